"""/v1/{project}/overview: what needs attention in a project, in numbers, and the newest objects (Stoker's own)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from msgspec import Meta

from stoker.http.contracts import Answer, Count, Id, Time, fill, operation
from stoker.http.heat import stacks
from stoker.http.request import RequestContext
from stoker.http.stoker.servers import list_states
from stoker.model.deployment import CheckState
from stoker.model.trigger import Schedule, TriggerStatus
from stoker.store import checks, deployments, rows, triggers
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from stoker.model.stack import Status
from stoker.store import audit, server_lists

_DAY = timedelta(days=1)
#: Highlights of each kind and status.
_MOST = 8


class Tally(Answer):
    """A number of objects, and the list that contains exactly these."""

    count: Count
    path: Annotated[str, Meta(description="The path of the list below that of the project, with its query")]


class Overview(Answer):
    """
    Stacks are counted without nested ones.

    Failed triggers and deployments are those that ended on the last day. Failed deployments are clients' own: those of
    stacks and triggers count there.
    """

    running_stacks: Tally
    running_triggers: Tally
    failed_stacks: Tally
    failed_triggers: Tally
    failed_deployments: Tally
    drifted_deployments: Tally
    online_servers: Tally
    offline_servers: Tally
    unapproved_servers: Tally
    outdated_agents: Tally
    schedules_of_next_day: Tally


class Highlight(Answer):
    """An object that needs attention. ``time`` is that of its last change, or the next one of a schedule."""

    kind: Literal["stack", "trigger", "deployment", "server", "check", "schedule"]
    id: Annotated[Id, Meta(description="Of a check: the id of its deployment")]
    name: str
    status: str
    text: str
    time: Time | None


class OverviewState(Answer):
    overview: Overview
    highlights: Annotated[list[Highlight], Meta(description="Up to eight objects of each kind and status")]


@operation(200, OverviewState)
def show(request: RequestContext, tx: Tx) -> OverviewState:
    """Count what runs, what has failed or drifted, and the servers that need attention, and name the newest ones."""
    return read(request.app, request.project, tx)


def read(app: App, project: str, tx: Tx) -> OverviewState:
    """Return the overview of a project."""
    # Whole minutes, so that the paths, and with them the event of streams, do not change at each read.
    now = tx.now.replace(second=0, microsecond=0)
    yesterday, tomorrow = now - _DAY, now + _DAY
    servers = list_states(app, project, tx)
    states = Counter(status for _, status, _ in servers)
    due = triggers.list_schedules(tx, project, tomorrow)
    count_triggers, in_progress, failed = triggers.count, TriggerStatus.IN_PROGRESS, TriggerStatus.FAILED
    failed_deployments = deployments.Filter(project_id=project, status="FAILED", of_client=True, ended_since=yesterday)
    overview = Overview(
        running_stacks=_tally(stacks.count(tx, project, in_progress), "stacks", status=in_progress),
        running_triggers=_tally(
            count_triggers(tx, project, in_progress, None), "software_triggers", status=in_progress
        ),
        failed_stacks=_tally(stacks.count(tx, project, failed), "stacks", status=failed),
        failed_triggers=_tally(
            count_triggers(tx, project, failed, yesterday),
            "software_triggers",
            status=failed,
            ended_since=rows.heat_time(yesterday),
        ),
        drifted_deployments=_tally(checks.count(tx, project, CheckState.DRIFTED), "checks", state=CheckState.DRIFTED),
        failed_deployments=_tally(
            deployments.count_matching(tx, failed_deployments),
            "software_deployments",
            status=failed,
            of_client="true",
            ended_since=rows.heat_time(yesterday),
        ),
        online_servers=_tally(states["ONLINE"], "servers", status="ONLINE"),
        offline_servers=_tally(states["OFFLINE"], "servers", status="OFFLINE"),
        unapproved_servers=_tally(states["PENDING_APPROVAL"], "servers", status="PENDING_APPROVAL"),
        outdated_agents=_tally(sum(outdated for *_, outdated in servers), "servers", agent_outdated="true"),
        schedules_of_next_day=_tally(len(due), "software_schedules", next_before=rows.heat_time(tomorrow)),
    )
    highlights = [  # what runs first, then failures, drift and schedules
        *_list_stacks(tx, project, Status.IN_PROGRESS),
        *_list_triggers(tx, project, in_progress),
        *_list_stacks(tx, project, Status.FAILED),
        *_list_triggers(tx, project, failed, yesterday),
        *_list_deployments(tx, failed_deployments),
        *_list_servers(tx, project),
        *_list_checks(tx, project),
        *_list_schedules(due),
    ]
    return OverviewState(overview, highlights)


def _tally(count: int, path: str, **query: str) -> Tally:
    return Tally(count, f"{path}?{urlencode(query)}")


def _list_stacks(tx: Tx, project: str, status: Status) -> Iterator[Highlight]:
    for stack in stacks.list_newest(tx, project, status, _MOST):
        full_status, changed_at = f"{stack.action}_{stack.status}", stack.updated_at or stack.created_at
        yield fill(Highlight, stack, kind="stack", status=full_status, text=stack.reason, time=changed_at)


def _list_triggers(
    tx: Tx, project: str, status: TriggerStatus, ended_since: datetime | None = None
) -> Iterator[Highlight]:
    for trigger in triggers.page(tx, project, status=status, ended_since=ended_since, limit=_MOST):
        ended = trigger.complete + trigger.failed + trigger.cancelled
        text = trigger.status_reason or f"{ended} of {trigger.total} ended, {trigger.failed} failed"
        yield fill(Highlight, trigger, kind="trigger", text=text, time=trigger.ended_at or trigger.created_at)


def _list_deployments(tx: Tx, failed: deployments.Filter) -> Iterator[Highlight]:
    newest = deployments.list_ended_last(tx, failed, _MOST)
    names = audit.names_of_all(tx, [deployment.id for deployment in newest])
    for deployment in newest:
        name, text = _name(names[deployment.id]), deployment.status_reason or ""
        yield fill(Highlight, deployment, kind="deployment", name=name, text=text, time=deployment.ended_at)


def _list_servers(tx: Tx, project: str) -> Iterator[Highlight]:
    for id, name, problem, last_seen in server_lists.list_problems(tx, project, _MOST):
        time = None if last_seen is None else rows.heat_time(last_seen)
        yield Highlight("server", id, name, "FAILED", problem, time)


def _list_checks(tx: Tx, project: str) -> Iterator[Highlight]:
    drifted = checks.list_all(tx, project, state=CheckState.DRIFTED, limit=_MOST)
    names = audit.names_of_all(tx, [row.check.deployment_id for row in drifted])
    for row in drifted:
        check, name = row.check, _name(names[row.check.deployment_id])
        values = {"id": check.deployment_id, "name": name, "status": check.state, "text": "", "time": check.since}
        yield fill(Highlight, check, kind="check", **values)


def _list_schedules(due: Iterable[Schedule]) -> Iterator[Highlight]:
    for schedule in sorted(due, key=lambda schedule: (schedule.next_at, schedule.id))[:_MOST]:
        text = schedule.cron or "once"
        yield fill(Highlight, schedule, kind="schedule", status="SCHEDULED", text=text, time=schedule.next_at)


def _name(names: Mapping[str, str | None]) -> str:
    """Return what people call a deployment: its stack and resource, or its config, and its server."""
    resource = names["resource_name"] and f"{names['stack_name']}/{names['resource_name']}"
    return f"{resource or names['config_name'] or 'deployment'} on {names['server_name'] or 'an unknown server'}"
