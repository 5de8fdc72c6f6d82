"""The objects that the overview names: what runs, has failed or drifted, and the next schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from stoker.http.fields import Answer, Id, Time
from stoker.http.heat import stacks
from stoker.model.check import CheckState
from stoker.model.status import Status
from stoker.model.trigger import TriggerStatus
from stoker.store import audit, checks, deployments, rows, schedules, server_lists, triggers
from stoker.store.tx import Tx

#: Objects of each kind and status.
_MOST = 8


class Highlight(Answer):
    """An object that needs attention. ``time`` is that of its last change, or the next one of a schedule."""

    kind: Literal["stack", "trigger", "deployment", "server", "check", "schedule"]
    id: Annotated[Id, Meta(description="Of a check: the id of its deployment")]
    name: str
    status: str
    text: str
    time: Time | None


def list_all(tx: Tx, project: str, yesterday: datetime, tomorrow: datetime) -> list[Highlight]:
    """
    Return the objects: what runs first, then failures, drift and schedules; of each, the newest ones.

    ``yesterday``: failures of triggers and deployments are later. ``tomorrow``: schedules are earlier.
    """
    return [
        *_list_stacks(tx, project, Status.IN_PROGRESS),
        *_list_triggers(tx, project, TriggerStatus.IN_PROGRESS),
        *_list_stacks(tx, project, Status.FAILED),
        *_list_triggers(tx, project, TriggerStatus.FAILED, yesterday),
        *_list_deployments(tx, project, yesterday),
        *_list_servers(tx, project),
        *_list_checks(tx, project),
        *_list_schedules(tx, project, tomorrow),
    ]


def _list_stacks(tx: Tx, project: str, status: Status) -> Iterator[Highlight]:
    for stack in stacks.list_newest(tx, project, status, _MOST):
        changed_at = rows.heat_time(stack.updated_at or stack.created_at)
        yield Highlight("stack", stack.id, stack.name, f"{stack.action}_{stack.status}", stack.reason, changed_at)


def _list_triggers(
    tx: Tx, project: str, status: TriggerStatus, ended_since: datetime | None = None
) -> Iterator[Highlight]:
    for trigger in triggers.page(tx, project, status=status, ended_since=ended_since, limit=_MOST):
        ended = trigger.complete + trigger.failed + trigger.cancelled
        text = trigger.status_reason or f"{ended} of {trigger.total} ended, {trigger.failed} failed"
        changed_at = rows.heat_time(trigger.ended_at or trigger.created_at)
        yield Highlight("trigger", trigger.id, trigger.name, trigger.status, text, changed_at)


def _list_deployments(tx: Tx, project: str, ended_since: datetime) -> Iterator[Highlight]:
    failed = deployments.Filter(project_id=project, status="FAILED", of_client=True, ended_since=ended_since)
    newest = deployments.list_ended_last(tx, failed, _MOST)
    names = audit.names_of_all(tx, [deployment.id for deployment in newest])
    for deployment in newest:
        name = _name(names[deployment.id])
        ended_at = rows.heat_time(deployment.ended_at) if deployment.ended_at else None
        reason = deployment.status_reason or ""
        yield Highlight("deployment", deployment.id, name, "FAILED", reason, ended_at)


def _list_servers(tx: Tx, project: str) -> Iterator[Highlight]:
    for id, name, problem, last_seen in server_lists.list_problems(tx, project, _MOST):
        yield Highlight("server", id, name, "FAILED", problem, None if last_seen is None else rows.heat_time(last_seen))


def _list_checks(tx: Tx, project: str) -> Iterator[Highlight]:
    drifted = checks.list_all(tx, project, state=CheckState.DRIFTED, limit=_MOST)
    names = audit.names_of_all(tx, [row.check.deployment_id for row in drifted])
    for row in drifted:
        id = row.check.deployment_id
        yield Highlight("check", id, _name(names[id]), row.check.state, "", rows.heat_time(row.check.since))


def _list_schedules(tx: Tx, project: str, before: datetime) -> Iterator[Highlight]:
    due = (schedule for schedule in schedules.list_all(tx, project, before) if schedule.next_at)
    for schedule in sorted(due, key=lambda schedule: (schedule.next_at, schedule.id))[:_MOST]:
        assert schedule.next_at is not None
        next_at = rows.heat_time(schedule.next_at)
        yield Highlight("schedule", schedule.id, schedule.name, "SCHEDULED", schedule.cron or "once", next_at)


def _name(names: Mapping[str, str | None]) -> str:
    """Return what people call a deployment: its stack and resource, or its config, and its server."""
    resource = names["resource_name"] and f"{names['stack_name']}/{names['resource_name']}"
    return f"{resource or names['config_name'] or 'deployment'} on {names['server_name'] or 'an unknown server'}"
