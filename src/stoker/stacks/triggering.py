"""Triggers, as users ask for them; each inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker.deployments import alone, policy, triggers
from stoker.deployments.gate import Asking
from stoker.model.errors import Conflict, Invalid, RequestLimitExceeded
from stoker.model.trigger import Content, Options, Target, TargetStatus, Trigger, TriggerStatus
from stoker.stacks.asking import Asked
from stoker.stacks.engine import Engine
from stoker.stacks.targeting import Meant, Source, resolve
from stoker.store import deployments, targets
from stoker.store import triggers as stored
from stoker.store.tx import Tx
from stoker.transports.choosing import AUTO

_LONGEST = 255
_AGAIN = (TargetStatus.FAILED, TargetStatus.CANCELLED)


def begin(
    tx: Tx, engine: Engine, project_id: str, asked: Asked, *, asked_by: str | None, schedule_id: str | None = None
) -> Trigger:
    """Raises EntityNotFound, Invalid, Conflict, DeploymentRefused, RequestLimitExceeded; then nothing has begun."""
    meant = resolve(tx, engine, project_id, asked)
    check(tx, engine, meant, asked)
    _check_policies(tx, engine, project_id, meant, asked_by)
    source, content = meant.source, meant.source.content
    id = str(uuid4())
    targets = [
        Target(
            trigger_id=id,
            position=position,
            server_id=server.id,
            server_name=server.name,
            name=asked.name or _called(own.name, meant.action),
            input_values=own.input_values,
        )
        for position, (server, own) in enumerate(meant.servers)
    ]
    said: dict[str, Any] = {**source.said}
    if asked.labels is not None:
        said["labels"] = dict(asked.labels)
    trigger = Trigger(
        id=id,
        project_id=project_id,
        name=asked.name or _called(said.get("resource") or source.name, meant.action),
        action=meant.action,
        source=said,
        stack_id=source.stack_id,
        input_values=asked.input_values,
        options=Options(
            signal_transport=asked.signal_transport,
            timeout=asked.timeout or source.timeout,
            max_concurrent=asked.max_concurrent,
            max_fail_percentage=asked.max_fail_percentage,
            in_window=asked.in_window,
            secret=secret_of(source),
        ),
        asked_by=asked_by,
        schedule_id=schedule_id,
        total=len(targets),
        queued=len(targets),
        created_at=tx.now,
    )
    return _begin(tx, engine, trigger, content, targets)


def check(tx: Tx, engine: Engine, meant: Meant, asked: Asked) -> None:
    """What would keep every run from being begun is told before anything is. Raises Invalid."""
    content = meant.source.content
    if asked.in_window:
        _check_windows(meant)
    for server, own in meant.servers:
        wanted = alone.Wanted(
            content=content,
            action=meant.action,
            name=own.name,
            input_values={**own.input_values, **asked.input_values},
            signal_transport=asked.signal_transport or AUTO,
            timeout=asked.timeout or meant.source.timeout,
        )
        alone.check(tx, engine.services, wanted, server.id)
        if content.input_key is None:
            break  # the others are no different


def _check_policies(tx: Tx, engine: Engine, project_id: str, meant: Meant, who: str | None) -> None:
    """Raises DeploymentRefused where no server would run it; where some would, the others fail by themselves."""
    first = None
    for server, _ in meant.servers:
        asking = Asking(
            project_id=project_id,
            server_id=server.id,
            deployment_id="",
            action=meant.action,
            group=meant.source.content.group,
            stack_id=meant.source.stack_id,
            who=who,
        )
        refusal = engine.services.gate.refusal(tx, asking)
        if refusal is None:
            return
        first = first or refusal
    if first is not None:
        raise first


def _check_windows(meant: Meant) -> None:
    """Runs wait for their server's window anyway; where there is none, they would begin at once."""
    without = [server.name for server, _ in meant.servers if not policy.read(server.policy or {}).windows]
    if without:
        named = ", ".join(without[:3]) + (f" and {len(without) - 3} more" if len(without) > 3 else "")
        raise Invalid(f"in_window: no maintenance window on {named}: have a policy give one, or leave in_window out")


def retry(tx: Tx, engine: Engine, trigger: Trigger, *, only_failed: bool, asked_by: str) -> Trigger:
    """The same once more, on the servers where it failed or was not run, or on all. Raises Conflict, Invalid."""
    if trigger.status == TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) is under way: wait for its end, or cancel it first.")
    id = str(uuid4())
    found = [each for each in targets.of_trigger(tx, trigger.id) if not only_failed or each.status in _AGAIN]
    if not found:
        raise Conflict(f"Nothing of the trigger ({trigger.id}) failed or was cancelled: say only_failed: false.")
    fresh = [
        replace(
            each,
            trigger_id=id,
            position=position,
            status=TargetStatus.QUEUED,
            status_reason="",
            deployment_id=None,
        )
        for position, each in enumerate(found)
    ]
    new = Trigger(
        id=id,
        project_id=trigger.project_id,
        name=trigger.name,
        action=trigger.action,
        source={**trigger.source, "retry_of": trigger.id},
        stack_id=trigger.stack_id,
        input_values=trigger.input_values,
        options=replace(trigger.options, stopped=None, stopped_by=None, forced=False),
        asked_by=asked_by,
        total=len(fresh),
        queued=len(fresh),
        created_at=tx.now,
    )
    return _begin(tx, engine, new, stored.content(tx, trigger.id), fresh)


def go_on(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """The job of a trigger that was too much for one transaction."""
    trigger = stored.find(tx, args["trigger_id"], hold=True)
    if trigger is not None:
        triggers.go_on(tx, engine.services, trigger)


def _called(name: str, action: str) -> str:
    """The action is what tells it from the original: of what is too long, the original's name is cut."""
    return f"{name[: max(0, _LONGEST - 1 - len(action))]}_{action}"[-_LONGEST:]


def secret_of(source: Source) -> tuple[str, ...]:
    """Names of the inputs whose values nobody is to see."""
    return (*source.secret, *(entry["name"] for entry in source.content.inputs if entry.get("secret")))


def _begin(tx: Tx, engine: Engine, trigger: Trigger, content: Content, targets: Sequence[Target]) -> Trigger:
    limit = engine.limits.deployments_per_project
    if limit >= 0 and limit < deployments.count(tx, trigger.project_id) + trigger.total:
        raise RequestLimitExceeded(f"this project may have {limit} deployments: delete some, or trigger fewer servers")
    return triggers.begin(tx, engine.services, trigger, content, targets)
