"""/v1/{project}/software_triggers: runs of actions on servers on demand (Stoker's own)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, field

from stoker.deployments.derive import redact_named
from stoker.http.api import warning_headers
from stoker.http.contracts import (
    Absent,
    Answer,
    Body,
    Count,
    Id,
    Moment,
    Positive,
    Query,
    Time,
    Whole,
    fill,
    operation,
)
from stoker.http.event_stream import format_cursor
from stoker.http.heat import runs as deployment_runs
from stoker.http.heat.runs import Cancellation, DeploymentRun
from stoker.http.request import RequestContext, Response
from stoker.model.deployment import Run, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.trigger import Mode, Target, TargetStatus, Trigger, TriggerStatus
from stoker.store import deployments, stacks, targets, triggers
from stoker.store.tx import Tx
from stoker.triggers import creation, lifecycle, results
from stoker.triggers.request import TriggerRequest
from stoker.triggers.results import OutputGroup
from stoker.triggers.sources import find_stack

#: The number of targets in one response at most.
MOST_TARGETS = 1000
#: Bits of a target's position in a cursor.
_POSITION_BITS = 24
#: The same for compact targets, and for groups of output.
MOST_COMPACT, MOST_GROUPS = 10_000, 100


class TriggerTarget(Answer):
    position: Count
    server_id: Id
    server_name: str
    resource_name: Annotated[
        str | None, Meta(description="The path of the resource whose deployment the target repeats, if any")
    ]
    deployment_id: Id | None
    name: str
    status: TargetStatus
    status_reason: str
    changed: Annotated[bool | None, Meta(description="Whether the run changed the server; null if not known")]
    run: DeploymentRun | None


class CompactTarget(Answer):
    """The state of a target, without the values of its run."""

    position: Count
    server_id: Id
    server_name: str
    resource_name: Annotated[str | None, Meta(description="As in the complete target")]
    deployment_id: Id | None
    status: TargetStatus
    state: Annotated[RunState | None, Meta(description="The state of the run, while the target is in progress")]
    changed: Annotated[bool | None, Meta(description="Whether the run changed the server; null if not known")]
    exit_code: str | None
    digest: Annotated[str | None, Meta(description="The digest of the output, equal for all targets of its group")]
    updated_at: Time | None = field(name="updated_time")


class SoftwareTrigger(Answer):
    id: Id
    name: str
    action: str
    source: Annotated[dict[str, Any], Meta(description="The source as the request named it")]
    status: TriggerStatus
    status_reason: str
    requested_by: str | None
    schedule_id: Id | None
    total: Count
    queued: Count
    running: Count
    complete: Count
    failed: Count
    cancelled: Count
    changed: Annotated[Count, Meta(description="Ended targets whose runs changed their servers")]
    unchanged: Annotated[Count, Meta(description="Ended targets whose runs changed nothing")]
    input_values: Annotated[dict[str, Any], Meta(description="The values of secret inputs are redacted")]
    signal_transport: str | None
    timeout: float | None
    max_concurrent: Count | None
    max_fail_percentage: float
    canary: int | str | None
    require_window: bool
    mode: Mode
    created_at: Time = field(name="creation_time")
    ended_at: Time | None = field(name="end_time")
    targets: Annotated[list[TriggerTarget], Meta(description="The first 1,000 targets")] | Absent = UNSET


class TriggerQuery(Query):
    limit: Positive | None = None
    marker: str | None = None
    status: TriggerStatus | None = None
    stack: Annotated[str | None, Meta(description="The name or id of the stack whose resources were triggered")] = None
    ended_since: Annotated[Moment | None, Meta(description="Only triggers that ended at this time or later")] = None
    contains: Annotated[str | None, Meta(description="Part of the name")] = None
    requested_by: Annotated[str | None, Meta(description="The name of the user")] = None


class ShowQuery(Query):
    targets: Annotated[bool, Meta(description="Whether the trigger has its targets")] = True


class TargetQuery(Query):
    limit: Annotated[Positive | None, Meta(description="At most this number of targets, and at most 1,000")] = None
    marker: Annotated[Whole | None, Meta(description="The position of the target after which the page begins")] = None
    status: TargetStatus | None = None


class CompactQuery(TargetQuery):
    limit: Annotated[Positive | None, Meta(description="At most this number of targets, and at most 10,000")] = None


class OutputQuery(Query):
    limit: Annotated[Positive, Meta(description="At most this number of groups, and at most 100")] = MOST_GROUPS
    status: TargetStatus | None = None


class Retry(Body):
    only_failed: Annotated[bool | None, Meta(description="false: all targets")] = None


#: Members of ``SoftwareTrigger`` that are options of the trigger.
_OPTIONS = ("signal_transport", "timeout", "max_concurrent", "max_fail_percentage", "canary", "require_window", "mode")


@operation(
    201,
    {"software_trigger": SoftwareTrigger},
    errors=(409,),
    example={
        "stack": "shop",
        "resource": "database",
        "action": "BACKUP",
        "input_values": {"target": "s3"},
        "max_concurrent": 50,
    },
)
def create(request: RequestContext, tx: Tx, body: TriggerRequest) -> Response:
    """
    Run an action of a component, or any config, on servers.

    A component or config runs once for each of its deployments on a server. A warning names the deployments whose last
    update has not succeeded: they run with the config and inputs of their last success.
    """
    user = request.user.user_name
    trigger = creation.create(tx, request.app.engine, request.project, body, requested_by=user)
    _describe(tx, request, trigger)
    return Response(201, _enclose(tx, trigger), warning_headers(_list_warnings(trigger)))


@operation(200, {"software_triggers": list[SoftwareTrigger]})
def index(request: RequestContext, tx: Tx, query: TriggerQuery) -> dict[str, Any]:
    """List the project's triggers, newest first, optionally with one status, of one stack, name or user."""
    try:
        stack_id = None if query.stack is None else find_stack(tx, request.project, query.stack).id
    except EntityNotFound:
        stack_id = query.stack  # the triggers of a deleted stack still exist
    page = triggers.page(
        tx,
        request.project,
        limit=query.limit,
        marker=query.marker,
        status=query.status,
        stack_id=stack_id,
        ended_since=query.ended_since,
        contains=query.contains,
        requested_by=query.requested_by,
    )
    return {"software_triggers": [serialize(tx, trigger) for trigger in page]}


@operation(200, {"software_trigger": SoftwareTrigger})
def show(request: RequestContext, tx: Tx, query: ShowQuery) -> dict[str, Any]:
    """Return a trigger with its first 1,000 targets."""
    trigger = triggers.get(tx, request.path["trigger_id"], request.project)
    shown = serialize(tx, trigger)
    if query.targets:
        shown.targets = _serialize_targets(tx, targets.page(tx, trigger.id, limit=MOST_TARGETS))
    return {"software_trigger": shown}


@operation(200, {"targets": list[TriggerTarget]})
def index_targets(request: RequestContext, tx: Tx, query: TargetQuery) -> dict[str, Any]:
    """List the targets of a trigger in their order, optionally with one status."""
    return {"targets": _serialize_targets(tx, _read_page(request, tx, query, MOST_TARGETS))}


@operation(200, {"targets": list[CompactTarget], "cursor": str})
def index_compact_targets(request: RequestContext, tx: Tx, query: CompactQuery) -> dict[str, Any]:
    """
    List the states of a trigger's targets in their order, optionally with one status.

    ``cursor`` is the Last-Event-ID with which a stream of the trigger's events continues after the list.
    """
    page = _read_page(request, tx, query, MOST_COMPACT)
    trigger = triggers.get(tx, request.path["trigger_id"])
    position = f"{encode_cursor(trigger.revision + 1, -1)}.0"
    current = find_runs(tx, [target for target in page if target.status == TargetStatus.IN_PROGRESS])
    shown = [serialize_compact(tx, target, current.get(target.deployment_id or "")) for target in page]
    return {"targets": shown, "cursor": format_cursor({f"trigger:{trigger.id}": position})}


@operation(200, {"output_groups": list[OutputGroup], "total": Count})
def index_output_groups(request: RequestContext, tx: Tx, query: OutputQuery) -> dict[str, Any]:
    """
    Group the ended targets of a trigger by exit code and output, the largest groups first.

    Output is equal if it differs only in the servers' own names and addresses, and in times. ``total`` is the number of
    all groups.
    """
    trigger = triggers.get(tx, request.path["trigger_id"], request.project)
    limit = min(query.limit, MOST_GROUPS)
    groups, total = results.group_outputs(tx, trigger.id, status=query.status, limit=limit)
    return {"output_groups": groups, "total": total}


@operation(202, {"software_trigger": SoftwareTrigger}, errors=(409,), body_optional=True)
def cancel(request: RequestContext, tx: Tx, body: Cancellation) -> dict[str, Any]:
    """
    Cancel a trigger: start no more runs and stop the running ones.

    The trigger ends when its runs have ended; with ``force``, without waiting for agents to stop them. Raises Conflict.
    """
    trigger, user, force = _find_locked(tx, request), request.user.user_name, bool(body.force)
    return _enclose(tx, lifecycle.cancel(tx, request.app.engine.env, trigger, user, force=force))


@operation(201, {"software_trigger": SoftwareTrigger}, errors=(409,), body_optional=True)
def retry(request: RequestContext, tx: Tx, body: Retry) -> Any:
    """
    Start a new trigger with the targets that failed or were cancelled, or with all targets.

    Raises Conflict or Invalid.
    """
    only_failed, user = body.only_failed is not False, request.user.user_name
    trigger = _find_locked(tx, request)
    return _enclose(tx, creation.retry(tx, request.app.engine, trigger, only_failed=only_failed, requested_by=user))


@operation(204, errors=(409,))
def delete(request: RequestContext) -> None:
    """Delete a trigger that has ended, and its deployments. Raises Conflict while the trigger is in progress."""
    env = request.app.engine.env
    with request.read() as tx:
        trigger = triggers.get(tx, request.path["trigger_id"], request.project)
    lifecycle.delete_most(request.app.store, env, trigger)
    request.write(lambda tx: lifecycle.delete(tx, env, _find_locked(tx, request)))


def _find_locked(tx: Tx, request: RequestContext) -> Trigger:
    """Return the trigger of the path, lock its row, and name it for the audit log. Raises EntityNotFound."""
    trigger = triggers.get(tx, request.path["trigger_id"], request.project, for_update=True)
    _describe(tx, request, trigger)
    return trigger


def _describe(tx: Tx, request: RequestContext, trigger: Trigger) -> None:
    """Name the trigger for the audit log. Each of its runs has an entry of its own."""
    subject = request.subject
    subject.detail = f"{trigger.name}: {trigger.action} on {trigger.total} servers ({trigger.id})"
    if trigger.stack_id is not None and (stack := stacks.find(tx, trigger.stack_id)) is not None:
        subject.stack_id, subject.stack_name = stack.id, stack.name
    subject.resource_name = trigger.source.get("resource")


def serialize(tx: Tx, trigger: Trigger) -> SoftwareTrigger:
    """Serialize a trigger without its targets, with the values of secret inputs redacted."""
    return fill(
        SoftwareTrigger,
        trigger,
        input_values=tx.secrets.redact(redact_named(trigger.input_values, trigger.options.secret)),
        targets=UNSET,
        **{name: getattr(trigger.options, name) for name in _OPTIONS},
    )


def serialize_target(tx: Tx, target: Target, run: Run | None) -> TriggerTarget:
    return fill(TriggerTarget, target, run=None if run is None else deployment_runs.serialize(tx, run))


def _read_page(request: RequestContext, tx: Tx, query: TargetQuery, most: int) -> list[Target]:
    """Return the targets of the path's trigger that the query selects, at most ``most``."""
    trigger = triggers.get(tx, request.path["trigger_id"], request.project)
    after = -1 if query.marker is None else query.marker
    return targets.page(tx, trigger.id, after=after, limit=min(query.limit or most, most), status=query.status)


def serialize_compact(tx: Tx, target: Target, run: Run | None) -> CompactTarget:
    """Serialize the state of a target; ``run`` is that of a target in progress."""
    return fill(CompactTarget, target, state=None if run is None else run.state_at(tx.now))


def encode_cursor(revision: int, position: int) -> int:
    """Return the position of an event stream after all changes of targets before this revision and position."""
    return revision << _POSITION_BITS | position + 1


def decode_cursor(cursor: int) -> tuple[int, int]:
    """Return the revision and the position of a cursor."""
    return cursor >> _POSITION_BITS, (cursor & (1 << _POSITION_BITS) - 1) - 1


def _serialize_targets(tx: Tx, states: Sequence[Target]) -> list[TriggerTarget]:
    current = find_runs(tx, states)
    return [serialize_target(tx, target, current.get(target.deployment_id or "")) for target in states]


def find_runs(tx: Tx, some: Sequence[Target]) -> dict[str, Run]:
    ids = [target.deployment_id for target in some if target.deployment_id]
    return {deployment.id: deployment.run for deployment in deployments.find_several(tx, ids)}


def _list_warnings(trigger: Trigger) -> list[str]:
    outdated = trigger.source.get("last_applied")
    if not outdated:
        return []
    return [
        f"The last update of {', '.join(outdated)} has not succeeded: the runs use the config and the inputs with which"
        " these deployments last succeeded"
    ]


def _enclose(tx: Tx, trigger: Trigger) -> dict[str, Any]:
    return {"software_trigger": serialize(tx, trigger)}
