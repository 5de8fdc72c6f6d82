"""Create, change and withdraw configs and deployments; take their signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from stoker.deployments import output, runs, schema, windows
from stoker.deployments.derive import without_secrets
from stoker.deployments.gate import Asking, Gate
from stoker.deployments.settle import settle
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment, Signal
from stoker.model.errors import Invalid, ResourceInUse
from stoker.model.status import Action, Status
from stoker.store import configs, deployments, logs
from stoker.store import runs as stored
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

#: What a deployment says of itself until its agent says more.
WAITING = windows.WAITING
NOT_WAITING = "Not waiting for outputs signal"


def new_config(
    tx: Tx,
    project_id: str,
    *,
    name: Any = None,
    group: Any = None,
    config: Any = None,
    inputs: Any = None,
    outputs: Any = None,
    options: Any = None,
) -> tuple[Config, str]:
    """The config and its rendered form. Raises Invalid for shapes Heat does not store."""
    if options is not None and not isinstance(options, Mapping):
        raise Invalid(f"options must be a map, not {type(options).__name__}")
    made = Config(
        id=str(uuid4()),
        project_id=project_id,
        name=_text(name, "name"),
        group=_text(group, "group"),
        config=config,
        inputs=schema.inputs(inputs),
        outputs=schema.outputs(outputs),
        options=options or {},
        created_at=tx.now,
    )
    return made, configs.add(tx, made)


def delete_config(tx: Tx, id: str, project_id: str) -> None:
    """Raises EntityNotFound, or ResourceInUse while a deployment runs it (Heat answers 500 there)."""
    configs.get(tx, id, project_id)
    if configs.in_use(tx, id):
        raise ResourceInUse(f"The software config ({id}) is used by a deployment: delete that first.")
    configs.delete(tx, id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One action to run: the derived config's parts, and whether a signal is awaited."""

    action: str
    name: str | None
    group: str
    config: Any
    inputs: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    input_values: Mapping[str, Any]
    signal_transport: str
    awaits_signal: bool
    #: Name of the user who asked for it; None: a stack's action did.
    asked_by: str | None = None


def begin(
    tx: Tx,
    run: Run,
    *,
    gate: Gate,
    project_id: str,
    server_id: str,
    deployment_id: str,
    resource_id: str | None = None,
    stack_id: str | None = None,
    trigger_id: str | None = None,
) -> Deployment:
    """A deployment's first run. Raises DeploymentRefused."""
    entry = gate.enter(
        tx,
        Asking(
            project_id=project_id,
            server_id=server_id,
            deployment_id=deployment_id,
            action=run.action,
            group=run.group,
            stack_id=stack_id,
            trigger_id=trigger_id,
            who=run.asked_by,
        ),
    )
    made = Deployment(
        id=deployment_id,
        project_id=project_id,
        server_id=server_id,
        config_id=_derive(tx, run, project_id),
        action=run.action,
        status=Status.IN_PROGRESS if run.awaits_signal else Status.COMPLETE,
        # What nobody waits for says nothing of a window: it would go on saying so when that is open.
        status_reason=(entry.reason or WAITING) if run.awaits_signal else NOT_WAITING,
        input_values=without_secrets(run.input_values, run.inputs),
        output_values={},
        created_at=tx.now,
        signal_transport=run.signal_transport,
        resource_id=resource_id,
        stack_id=stack_id,
        trigger_id=trigger_id,
        withheld=entry.withheld,
        admitted=entry.admitted,
    )
    return add(tx, made, run.asked_by)


def add(tx: Tx, made: Deployment, asked_by: str | None) -> Deployment:
    """It is there, with its first run, and its server's agent is woken."""
    deployments.add(tx, made)
    runs.record(tx, made, asked_by)
    tx.touch(made.server_id)
    return made


def entered(tx: Tx, deployment: Deployment, who: str, *, gate: Gate) -> Deployment:
    """What a REST client makes or changes itself, as its server's policy lets it in. Raises DeploymentRefused."""
    asking = replace(_again(deployment, deployment.action, None, who), config_id=deployment.config_id)
    entry = gate.enter(tx, asking)
    found = replace(deployment, admitted=entry.admitted, withheld=entry.withheld)
    if entry.reason is not None and found != deployment and deployment.status == Status.IN_PROGRESS:
        return replace(found, status_reason=entry.reason)
    return found


def begin_again(tx: Tx, deployment: Deployment, run: Run, *, gate: Gate) -> Deployment:
    """
    A later run of the same deployment; the derived config of the one before goes.

    Outputs stay readable until the new run reports its own. Raises DeploymentRefused, but for the run that cleans up.
    """
    asking = _again(deployment, run.action, run.group, run.asked_by)
    if run.action == Action.DELETE:
        entry = gate.enter_again(tx, asking, admitted=deployment.admitted)
    else:
        entry = gate.enter(tx, asking)
    changed = replace(
        deployment,
        config_id=_derive(tx, run, deployment.project_id),
        action=run.action,
        status=Status.IN_PROGRESS if run.awaits_signal else Status.COMPLETE,
        status_reason=(entry.reason or WAITING) if run.awaits_signal else NOT_WAITING,
        input_values=without_secrets(run.input_values, run.inputs),
        signal_transport=run.signal_transport,
        withheld=entry.withheld,
        cancelling=False,
        admitted=entry.admitted,
        updated_at=tx.now,
    )
    _take_over(tx, deployment, changed)
    runs.record(tx, changed, run.asked_by)
    configs.delete(tx, deployment.config_id)
    return changed


def rerun(tx: Tx, deployment: Deployment, config: Config, asked_by: str | None, *, gate: Gate) -> Deployment:
    """
    Another run of one whose config is a client's own, which stays; ``config`` is its new copy. Raises
    DeploymentRefused.
    """
    asking = _again(deployment, deployment.action, config.group or UNGROUPED, asked_by)
    entry = gate.enter(tx, asking)
    configs.add(tx, config)
    changed = replace(
        deployment,
        config_id=config.id,
        status=Status.IN_PROGRESS,
        status_reason=entry.reason or WAITING,
        withheld=entry.withheld,
        cancelling=False,
        admitted=entry.admitted,
        updated_at=tx.now,
    )
    _take_over(tx, deployment, changed)
    runs.record(tx, changed, asked_by, config.inputs)
    return changed


def take_signal(tx: Tx, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """The deployment as the signal left it: it may only say how far it is. One that had ended is returned as it was."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    if runs.is_progress(values):
        return runs.heard(tx, deployment, runs.progress_of(tx, values))
    output.log_of_report(tx, deployment, values, log_bytes)
    config = configs.find(tx, deployment.config_id)
    settled = settle(deployment, config.outputs if config else (), Signal(values))
    return save(tx, replace(settled, cancelling=False, updated_at=tx.now), values)


def fail(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """End a run nobody will report on any more; its entry leaves the server's document."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return save(tx, replace(deployment, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def save(tx: Tx, changed: Deployment, values: Mapping[str, Any] = MappingProxyType({})) -> Deployment:
    """``values``: those that its run was reported with, if it was."""
    deployments.save(tx, changed)
    if changed.status in (Status.COMPLETE, Status.FAILED):
        runs.ended(tx, changed, values)
    tx.touch(changed.server_id)
    tx.ring(deployment_topic(changed.id))
    return changed


def withdraw(tx: Tx, deployment: Deployment) -> None:
    """Delete it with all that only it needed, except a config that REST clients made themselves."""
    deployments.delete(tx, deployment.id)
    stored.forget(tx, deployment.id)
    logs.forget(tx, deployment.id)
    tx.touch(deployment.server_id)
    tx.ring(deployment_topic(deployment.id))


def _take_over(tx: Tx, before: Deployment, changed: Deployment) -> None:
    """What it ran before is another's business no more."""
    deployments.save(tx, changed)
    stored.supersede(tx, before.id, before.config_id)
    tx.touch(changed.server_id)
    tx.ring(deployment_topic(changed.id))


def _again(deployment: Deployment, action: str | None, group: str | None, who: str | None) -> Asking:
    return Asking(
        project_id=deployment.project_id,
        server_id=deployment.server_id,
        deployment_id=deployment.id,
        action=action,
        group=group,
        stack_id=deployment.stack_id,
        trigger_id=deployment.trigger_id,
        who=who,
    )


def _derive(tx: Tx, run: Run, project_id: str) -> str:
    derived = Config(
        id=str(uuid4()),
        project_id=project_id,
        name=run.name,
        group=run.group or UNGROUPED,
        config=run.config,
        inputs=run.inputs,
        outputs=run.outputs,
        options=run.options,
        created_at=tx.now,
    )
    configs.add(tx, derived)
    return derived.id


def _text(value: Any, what: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{what} must be a string, not {type(value).__name__}")
    if len(value) > 255 or "\0" in value:
        raise Invalid(f"{what} must be at most 255 characters, without NUL")
    return value
