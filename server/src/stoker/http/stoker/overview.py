"""/v1/{project}/overview: what needs attention in a project, in numbers (Stoker's own)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Count
from stoker.http.heat import stacks
from stoker.http.request import RequestContext
from stoker.http.stoker import highlights
from stoker.http.stoker.highlights import Highlight
from stoker.http.stoker.servers import list_states
from stoker.model.check import CheckState
from stoker.model.trigger import TriggerStatus
from stoker.store import checks, deployments, rows, schedules, triggers
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App

_DAY = timedelta(days=1)


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
    count_triggers, in_progress, failed = triggers.count, TriggerStatus.IN_PROGRESS, TriggerStatus.FAILED
    failed_deployments = deployments.Filter(project_id=project, status="FAILED", of_client=True, ended_since=yesterday)
    overview = Overview(
        running_stacks=_tally(stacks.count(tx, project, in_progress), "stacks", status=in_progress),
        running_triggers=_tally(count_triggers(tx, project, in_progress), "software_triggers", status=in_progress),
        failed_stacks=_tally(stacks.count(tx, project, failed), "stacks", status=failed),
        failed_triggers=_tally(
            count_triggers(tx, project, failed, ended_since=yesterday),
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
        schedules_of_next_day=_tally(
            len(schedules.list_all(tx, project, tomorrow)),
            "software_schedules",
            next_before=rows.heat_time(tomorrow),
        ),
    )
    return OverviewState(overview, highlights.list_all(tx, project, yesterday, tomorrow))


def _tally(count: int, path: str, **query: str) -> Tally:
    return Tally(count, f"{path}?{urlencode(query)}")
