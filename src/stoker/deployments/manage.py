"""Create, change and withdraw configs and deployments; take their signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from stoker.deployments import schema
from stoker.deployments.settle import settle
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment, Signal
from stoker.model.errors import Invalid, ResourceInUse
from stoker.model.status import Status
from stoker.store import configs, deployments, runs
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

#: What a deployment says of itself until its agent says more.
WAITING = "Waiting for the agent"
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


def begin(
    tx: Tx,
    run: Run,
    *,
    project_id: str,
    server_id: str,
    deployment_id: str,
    resource_id: str | None = None,
    stack_id: str | None = None,
) -> Deployment:
    """A deployment's first run."""
    made = Deployment(
        id=deployment_id,
        project_id=project_id,
        server_id=server_id,
        config_id=_derive(tx, run, project_id),
        action=run.action,
        status=Status.IN_PROGRESS if run.awaits_signal else Status.COMPLETE,
        status_reason=WAITING if run.awaits_signal else NOT_WAITING,
        input_values=run.input_values,
        output_values={},
        created_at=tx.now,
        signal_transport=run.signal_transport,
        resource_id=resource_id,
        stack_id=stack_id,
    )
    deployments.add(tx, made)
    tx.touch(server_id)
    return made


def begin_again(tx: Tx, deployment: Deployment, run: Run) -> Deployment:
    """
    A later run of the same deployment; the derived config of the one before goes.

    Outputs stay readable until the new run reports its own.
    """
    changed = replace(
        deployment,
        config_id=_derive(tx, run, deployment.project_id),
        action=run.action,
        status=Status.IN_PROGRESS if run.awaits_signal else Status.COMPLETE,
        status_reason=WAITING if run.awaits_signal else NOT_WAITING,
        input_values=run.input_values,
        signal_transport=run.signal_transport,
        updated_at=tx.now,
    )
    deployments.save(tx, changed)
    configs.delete(tx, deployment.config_id)
    tx.touch(deployment.server_id)
    tx.ring(deployment_topic(deployment.id))
    return changed


def take_signal(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """The deployment as the signal left it. One that had ended is returned as it was."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    config = configs.find(tx, deployment.config_id)
    settled = settle(deployment, config.outputs if config else (), Signal(values))
    return save(tx, replace(settled, updated_at=tx.now))


def fail(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """End a run nobody will report on any more; its entry leaves the server's document."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return save(tx, replace(deployment, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def save(tx: Tx, changed: Deployment) -> Deployment:
    deployments.save(tx, changed)
    tx.touch(changed.server_id)
    tx.ring(deployment_topic(changed.id))
    return changed


def withdraw(tx: Tx, deployment: Deployment) -> None:
    """Delete it with all that only it needed, except a config that REST clients made themselves."""
    deployments.delete(tx, deployment.id)
    runs.forget(tx, deployment.id)
    tx.touch(deployment.server_id)
    tx.ring(deployment_topic(deployment.id))


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
