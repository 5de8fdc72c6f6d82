"""
Creation, change and withdrawal of configs and deployments, and signals to them.

All functions act within the caller's write transaction. Every run of every deployment starts here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from stoker.deployments import held_runs, log_storage, runs, schema
from stoker.deployments.derive import without_secrets
from stoker.deployments.signals import resolve_signal
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment, Signal
from stoker.model.errors import Invalid, ResourceInUse
from stoker.model.status import Action, Status
from stoker.policy.authorizer import AuthorizationRequest, DeploymentAuthorizer
from stoker.store import configs, deployments, logs, schedules
from stoker.store import runs as stored
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: Status reasons until an agent reports progress.
WAITING = held_runs.WAITING
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
    """
    Store a new config. Return the config and its rendered form. Raises Invalid for values that Heat does not store.
    """
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
    """
    Delete a config.

    Raises EntityNotFound, or ResourceInUse while a deployment or schedule uses the config (Heat answers 500 in this
    case).
    """
    configs.lock(tx, id)
    configs.get(tx, id, project_id)
    if configs.in_use(tx, id):
        raise ResourceInUse(f"The software config ({id}) is used by a deployment: delete that first.")
    schedule = schedules.using_config(tx, id)
    if schedule is not None:
        raise ResourceInUse(
            f"The software config ({id}) is used by the schedule {schedule.name!r} ({schedule.id}): delete or change"
            " that first."
        )
    configs.delete(tx, id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run to start: the parts of its derived config, and whether a signal ends the run."""

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
    #: Name of the requesting user; None: an action of a stack starts the run.
    requested_by: str | None = None


def begin(
    tx: Tx,
    run: Run,
    *,
    authorizer: DeploymentAuthorizer,
    project_id: str,
    server_id: str,
    deployment_id: str,
    resource_id: str | None = None,
    stack_id: str | None = None,
    trigger_id: str | None = None,
) -> Deployment:
    """Create a deployment with its first run. Return the deployment. Raises DeploymentRefused."""
    entry = authorizer.authorize(
        tx,
        AuthorizationRequest(
            project_id=project_id,
            server_id=server_id,
            deployment_id=deployment_id,
            action=run.action,
            group=run.group,
            stack_id=stack_id,
            trigger_id=trigger_id,
            actor=run.requested_by,
        ),
    )
    made = Deployment(
        id=deployment_id,
        project_id=project_id,
        server_id=server_id,
        config_id=_derive(tx, run, project_id),
        action=run.action,
        status=Status.IN_PROGRESS if run.awaits_signal else Status.COMPLETE,
        # Without a signal, the reason never changes again, so it must not mention a maintenance window.
        status_reason=(entry.reason or WAITING) if run.awaits_signal else NOT_WAITING,
        input_values=without_secrets(run.input_values, run.inputs),
        output_values={},
        created_at=tx.now,
        signal_transport=run.signal_transport,
        resource_id=resource_id,
        stack_id=stack_id,
        trigger_id=trigger_id,
        held_by=entry.held_by,
        admitted=entry.admitted,
    )
    return add(tx, made, run.requested_by)


def add(tx: Tx, new: Deployment, requested_by: str | None) -> Deployment:
    """Store a deployment with its first run, and notify its server's agent."""
    deployments.add(tx, new)
    _start_run(tx, new, requested_by)
    return new


def change_config(tx: Tx, before: Deployment, changed: Deployment, requested_by: str) -> Deployment:
    """Start another run of a deployment with the config that a REST client chose."""
    _replace_run(tx, before, changed, requested_by)
    if changed.has_ended:
        runs.record_end(tx, changed, {})
    return changed


def start_first(tx: Tx, changed: Deployment, requested_by: str) -> Deployment:
    """Start the first run of a deployment that was stored without a status. The run may end immediately."""
    deployments.save(tx, changed)
    stored.forget(tx, changed.id)
    _start_run(tx, changed, requested_by)
    if changed.has_ended:
        runs.record_end(tx, changed, {})
    tx.notify(deployment_topic(changed.id))
    return changed


def authorize(tx: Tx, deployment: Deployment, actor: str, *, authorizer: DeploymentAuthorizer) -> Deployment:
    """
    Apply the server's policy to a deployment that a REST client creates or changes.

    Returns the deployment as admitted, not stored yet. Raises DeploymentRefused.
    """
    asking = replace(_again(deployment, deployment.action, None, actor), config_id=deployment.config_id)
    entry = authorizer.authorize(tx, asking)
    found = replace(deployment, admitted=entry.admitted, held_by=entry.held_by)
    if entry.reason is not None and found != deployment and deployment.status == Status.IN_PROGRESS:
        return replace(found, status_reason=entry.reason)
    return found


def begin_again(tx: Tx, deployment: Deployment, run: Run, *, authorizer: DeploymentAuthorizer) -> Deployment:
    """
    Start a later run of a deployment and delete the derived config of the previous run.

    Outputs stay readable until the new run reports its own. Raises DeploymentRefused, except for the run that cleans
    up.
    """
    asking = _again(deployment, run.action, run.group, run.requested_by)
    if run.action == Action.DELETE:
        entry = authorizer.authorize_cleanup(tx, asking, admitted=deployment.admitted)
    else:
        entry = authorizer.authorize(tx, asking)
    changed = replace(
        deployment,
        config_id=_derive(tx, run, deployment.project_id),
        action=run.action,
        status=Status.IN_PROGRESS if run.awaits_signal else Status.COMPLETE,
        status_reason=(entry.reason or WAITING) if run.awaits_signal else NOT_WAITING,
        input_values=without_secrets(run.input_values, run.inputs),
        signal_transport=run.signal_transport,
        held_by=entry.held_by,
        cancelling=False,
        admitted=entry.admitted,
        updated_at=tx.now,
    )
    _replace_run(tx, deployment, changed, run.requested_by)
    return changed


def rerun(
    tx: Tx, deployment: Deployment, config: Config, requested_by: str | None, *, authorizer: DeploymentAuthorizer
) -> Deployment:
    """
    Start another run of a deployment whose config a client created. ``config`` is a new copy of that config.

    Raises DeploymentRefused.
    """
    asking = _again(deployment, deployment.action, config.group or UNGROUPED, requested_by)
    entry = authorizer.authorize(tx, asking)
    configs.add(tx, config)
    changed = replace(
        deployment,
        config_id=config.id,
        status=Status.IN_PROGRESS,
        status_reason=entry.reason or WAITING,
        held_by=entry.held_by,
        cancelling=False,
        admitted=entry.admitted,
        updated_at=tx.now,
    )
    _replace_run(tx, deployment, changed, requested_by, config.inputs)
    return changed


def apply_signal(tx: Tx, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """
    Apply the values of a signal, which may report only progress. Return the changed deployment.

    A deployment that has ended is returned unchanged. At most ``log_bytes`` of each stream are kept.
    """
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    if runs.is_progress(values):
        return runs.record_progress(tx, deployment, runs.progress_of(tx, values))
    log_storage.store_report(tx, deployment, values, log_bytes)
    config = configs.find(tx, deployment.config_id)
    settled = resolve_signal(deployment, config.outputs if config else (), Signal(values))
    return save(tx, replace(settled, cancelling=False, updated_at=tx.now), values)


def fail(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """Fail a run without further reports. The run leaves the server's document."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return save(tx, replace(deployment, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def save(tx: Tx, changed: Deployment, values: Mapping[str, Any] = MappingProxyType({})) -> Deployment:
    """Store a changed deployment. ``values``: those of the report that ended the run, if there is one."""
    deployments.save(tx, changed)
    if changed.has_ended:
        runs.record_end(tx, changed, values)
    tx.bump_document(changed.server_id)
    tx.notify(deployment_topic(changed.id))
    return changed


def withdraw(tx: Tx, deployment: Deployment) -> None:
    """Delete a deployment with its runs, their output and its derived config."""
    deployments.delete(tx, deployment.id)
    configs.delete_owned(tx, deployment.config_id)
    stored.forget(tx, deployment.id)
    logs.forget(tx, deployment.id)
    tx.bump_or_drop_document(deployment.server_id)
    tx.notify(deployment_topic(deployment.id))


def _start_run(
    tx: Tx, deployment: Deployment, requested_by: str | None, inputs: Iterable[Mapping[str, Any]] = ()
) -> None:
    """Record a run and notify the server's agent. Every run of every deployment starts here."""
    runs.record(tx, deployment, requested_by, inputs)
    tx.bump_document(deployment.server_id)


def _replace_run(
    tx: Tx,
    before: Deployment,
    changed: Deployment,
    requested_by: str | None,
    inputs: Iterable[Mapping[str, Any]] = (),
) -> None:
    """End the previous run, if necessary, and start the next. The previous derived config is no longer needed."""
    deployments.save(tx, changed)
    stored.supersede(tx, before.id, before.config_id)
    configs.delete_owned(tx, before.config_id)
    _start_run(tx, changed, requested_by, inputs)
    tx.notify(deployment_topic(changed.id))


def _again(deployment: Deployment, action: str | None, group: str | None, actor: str | None) -> AuthorizationRequest:
    return AuthorizationRequest(
        project_id=deployment.project_id,
        server_id=deployment.server_id,
        deployment_id=deployment.id,
        action=action,
        group=group,
        stack_id=deployment.stack_id,
        trigger_id=deployment.trigger_id,
        actor=actor,
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
        is_owned=True,
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
