"""
The life of a deployment: start and end of its runs, and its removal. The path is the same for every owner.

All functions act within the caller's write transaction. Every run of every deployment starts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker.deployments import checks, deadlines, owners, run_end
from stoker.deployments.deadlines import cancel_deadline, set_deadline
from stoker.deployments.dependencies import list_pending
from stoker.deployments.derive import without_secrets
from stoker.deployments.env import DeploymentEnv
from stoker.deployments.held_runs import WAITING
from stoker.deployments.owners import Client, Owner
from stoker.deployments.run_plan import PlannedRun, RunRequest, plan_rerun, plan_run, plan_undo
from stoker.deployments.undo import find_undo
from stoker.model.check import CheckSettings
from stoker.model.delivered_hook import delivered
from stoker.model.deployment import PREVIEW, Deployment
from stoker.model.errors import Conflict, DeploymentRefused
from stoker.model.status import Action, Status
from stoker.policy.authorizer import AuthorizationRequest
from stoker.store import configs, deployments, logs
from stoker.store import runs as stored
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx
from stoker.transports.base import NeedsProvisioning
from stoker.work import Work

NOT_WAITING = "Not waiting for outputs signal"


def start_run(
    tx: Tx,
    env: DeploymentEnv,
    owner: Owner,
    request: RunRequest,
    *,
    project_id: str,
    server_id: str,
    deployment_id: str | None = None,
    before: Deployment | None = None,
) -> Deployment:
    """
    Derive a config and start its run, as the first of a new deployment or as a later one of the deployment ``before``.

    Creates the transport's object or queue for results. ``deployment_id``: the id of a new deployment. Returns the
    deployment. Raises Invalid, UserParameterMissing, DeploymentRefused.
    """
    id = deployment_id or str(uuid4())
    transport = owner.transport(tx, env, request.signal_transport, server_id)
    target = owner.target(id, project_id, request.name, 1)
    provisioning = transport if isinstance(transport, NeedsProvisioning) and not owner.has_transport else None
    if provisioning is not None:
        provisioning.open(tx, env.platform, target)
    inputs = owner.signal_inputs(tx, env, transport, target)
    run = plan_run(tx, request, transport, inputs, project_id=project_id, server_id=server_id)
    try:
        if before is not None:
            return _start(tx, env, run, before)
        new = _new_deployment(tx, run, owner, id, server_id)
        return _start(tx, env, run, new, is_first=True)
    except DeploymentRefused:
        if provisioning is not None:
            provisioning.close(tx, env.platform, target)
        raise


def restart_run(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> Deployment:
    """Start another run of the same config with the same inputs. Raises DeploymentRefused."""
    return _start(tx, env, plan_rerun(tx, env, deployment, requested_by), deployment)


def create(tx: Tx, env: DeploymentEnv, new: Deployment, requested_by: str) -> Deployment:
    """
    Create a deployment that runs a client's config unchanged, as in Heat. Return it. Raises DeploymentRefused.
    """
    admitted = authorize(tx, env, new, requested_by)
    deployments.add(tx, admitted)
    record_run(tx, admitted, requested_by, is_first=True)
    return admitted


def authorize(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str) -> Deployment:
    """
    Apply the server's policy to a deployment of a client's config.

    Returns the deployment as admitted, not stored yet. Raises DeploymentRefused.
    """
    hook = configs.find_hook(tx, deployment.config_id)
    request = replace(
        _authorization(deployment, deployment.action, requested_by), config_id=deployment.config_id, hook=hook
    )
    admission = env.authorizer.authorize(tx, request)
    admitted = replace(deployment, admitted=admission.admitted, held_by=admission.held_by)
    if admission.reason is not None and admitted != deployment and deployment.status == Status.IN_PROGRESS:
        return replace(admitted, status_reason=admission.reason)
    return admitted


def signal(tx: Tx, env: DeploymentEnv, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """Apply a signal to a locked deployment and tell its owner. Late and repeated signals change nothing."""
    return _tell_end(tx, env, deployment, run_end.apply_signal(tx, env.work, deployment, values, log_bytes))


def fail(tx: Tx, env: DeploymentEnv, args: Mapping[str, Any]) -> None:
    """
    Job: fail a run whose deadline has passed, or whose server was removed.

    ``args``: ``deployment_id``, ``config_id`` of the run, and ``reason`` unless the run timed out.
    """
    unlocked = deployments.find(tx, args["deployment_id"])
    deployment = owners.lock(tx, unlocked) if unlocked else None
    if deployment is not None and deployment.config_id == args["config_id"]:
        reason = args.get("reason") or f"Timed out: {deployment.status_reason}"
        _tell_end(tx, env, deployment, run_end.fail(tx, env.work, deployment, reason))


def cancel(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str, *, force: bool = False) -> Deployment:
    """
    Cancel the current run of a deployment.

    The run ends when its agent has stopped it; with ``force`` it ends now. Raises Conflict if the deployment has ended.
    """
    before = owners.lock(tx, deployment)
    if before.status != Status.IN_PROGRESS:
        raise Conflict(
            f"The deployment ({before.id}) is {before.status or 'not under way'}: there is nothing to cancel."
        )
    stop = run_end.force_fail if force else run_end.cancel
    return _tell_end(tx, env, before, stop(tx, env.work, before, f"Cancelled by {requested_by}"))


def retry(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str) -> Deployment:
    """
    Run a failed deployment again.

    A deployment of a stack is retried by an update of the stack with its present template. Raises Conflict if the
    deployment has not failed or the stack permits no retry.
    """
    failed = owners.lock(tx, deployment)
    if failed.status != Status.FAILED:
        raise Conflict(
            f"The deployment ({failed.id}) is {failed.status or 'not under way'}: only what failed is retried."
        )
    listener = env.listeners.of(failed)
    retried = listener.retry(tx, failed)
    if retried is None:
        retried = restart_run(tx, env, failed, requested_by)
        listener.run_restarted(tx, env, retried)
    return retried


def remove(
    tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None = None, *, force: bool = False
) -> None:
    """
    Remove a deployment at the request of a client.

    If the config of a client's own deployment says so, a run undoes the deployment first, which then disappears when
    the run is complete; ``force`` removes it at once. Raises Invalid if the server's agent cannot undo, and
    DeploymentRefused.

    A resource that waits for the deployment fails, unless the resource itself is being deleted. The stack creates a
    missing deployment again when an update needs it. A trigger counts the deployment as cancelled.
    """
    removed = owners.lock(tx, deployment)
    is_own = removed.resource_id is None and removed.trigger_id is None
    if is_own and not force and _undo(tx, env, removed, requested_by):
        return
    withdraw(tx, env, removed)
    env.listeners.of(removed).removed(tx, env, removed)


def _undo(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> bool:
    """Start the run that undoes the deployment. Return False if there is nothing to undo."""
    if deployment.removing and deployment.status == Status.IN_PROGRESS:
        return True
    undo = find_undo(tx, deployment, deadlines.limit_of(tx, deployment))
    if undo is None:
        return False
    _start(tx, env, plan_undo(tx, env, deployment, requested_by, undo), replace(deployment, removing=True))
    return True


def withdraw(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """
    Delete a deployment with its runs, their output, its derived config and the object or queue for its results.

    The object or queue of a resource stays until the resource is deleted.
    """
    cancel_deadline(tx, env.work, deployment)
    deployments.delete(tx, deployment.id)
    configs.delete_owned(tx, deployment.config_id)
    stored.forget(tx, deployment.id)
    logs.forget(tx, deployment.id)
    tx.bump_or_drop_document(deployment.server_id)
    tx.notify(deployment_topic(deployment.id))
    if deployment.resource_id is None:
        close_transport(tx, env, Client(), deployment)


def close_transport(tx: Tx, env: DeploymentEnv, owner: Owner, deployment: Deployment) -> None:
    """Close the object or queue for the deployment's results."""
    transport = env.transports.signal_transports.get(deployment.signal_transport or "")
    if isinstance(transport, NeedsProvisioning):
        transport.close(tx, env.platform, owner.target(deployment.id, deployment.project_id))


def record_run(
    tx: Tx, deployment: Deployment, requested_by: str | None, inputs: Any = (), *, is_first: bool = False
) -> None:
    """
    Record a run and notify the server's agent. Every run of every deployment starts here.

    ``inputs``: those of its config, if the deployment's input values are not redacted yet. ``is_first``: this
    transaction has created the deployment.
    """
    stored.add(tx, deployment, without_secrets(deployment.input_values, inputs), requested_by, is_first=is_first)
    tx.bump_document(deployment.server_id)


def supersede_run(tx: Tx, work: Work, before: Deployment, changed: Deployment) -> None:
    """Store a deployment with its next run. The previous run ends, and its derived config is no longer needed."""
    deployments.save(tx, changed)
    cancel_deadline(tx, work, before)
    checks.reset(tx, changed)
    stored.supersede(tx, before.id, before.config_id)
    configs.delete_owned(tx, before.config_id)
    tx.notify(deployment_topic(changed.id))


def _start(tx: Tx, env: DeploymentEnv, run: PlannedRun, before: Deployment, *, is_first: bool = False) -> Deployment:
    """
    Start a run, unless the server's policy denies it. No policy denies the run with which a resource cleans up.

    Outputs of the previous run stay readable until the new run reports its own.
    """
    request = replace(
        _authorization(before, run.action, run.requested_by, run.config.group),
        hook=delivered(run.config.options),
        is_preview=run.mode == PREVIEW,
    )
    if run.action == Action.DELETE and before.resource_id is not None and not is_first:
        admission = env.authorizer.authorize_cleanup(tx, request, admitted=before.admitted)
    else:
        admission = env.authorizer.authorize(tx, request)
    dependencies = list_pending(tx, run.config, before.server_id, before.id) if run.mode is None else ()
    configs.add(tx, run.config)
    inputs, awaits_signal = run.config.inputs, run.awaits_signal
    waiting = f"Waiting for {', '.join(dependencies)} on this server" if dependencies else WAITING
    started = replace(
        before,
        config_id=run.config.id,
        action=run.action,
        status=Status.IN_PROGRESS if awaits_signal else Status.COMPLETE,
        # Without a signal, the reason never changes again, so it must not mention a maintenance window.
        status_reason=(admission.reason or waiting) if awaits_signal else NOT_WAITING,
        # A client's config has the client's own values.
        input_values=without_secrets(run.input_values, inputs) if run.transport else run.input_values,
        signal_transport=run.transport.signal_name if run.transport else None,
        held_by=admission.held_by,
        cancelling=False,
        mode=run.mode,
        changed=None,
        changed_items=0,
        admitted=admission.admitted,
        updated_at=None if is_first else tx.now,
    )
    if is_first:
        deployments.add(tx, started)
    else:
        supersede_run(tx, env.work, before, started)
    record_run(tx, started, run.requested_by, inputs, is_first=is_first)
    if run.checks is not None and (run.checks != CheckSettings() or not is_first):
        checks.configure(tx, env.work, started, run.checks)
    if run.timeout is not None and awaits_signal:
        set_deadline(tx, env.work, started, run.timeout)
    return started


def _new_deployment(tx: Tx, run: PlannedRun, owner: Owner, id: str, server_id: str) -> Deployment:
    """Return a deployment that has not started."""
    return Deployment(
        id=id,
        project_id=run.config.project_id,
        server_id=server_id,
        config_id=run.config.id,
        action=run.action,
        status=None,
        status_reason=None,
        input_values={},
        output_values={},
        created_at=tx.now,
        stack_id=owner.columns.get("stack_id"),
        resource_id=owner.columns.get("resource_id"),
        trigger_id=owner.columns.get("trigger_id"),
    )


def _authorization(
    deployment: Deployment, action: str | None, actor: str | None, group: str | None = None
) -> AuthorizationRequest:
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


def _tell_end(tx: Tx, env: DeploymentEnv, before: Deployment, after: Deployment) -> Deployment:
    """Tell the owner if the run has ended. Return the deployment."""
    if after.has_ended and not before.has_ended:
        env.listeners.of(after).run_ended(tx, env, after, cancelled=before.cancelling)
        if after.removing and after.status == Status.COMPLETE:
            withdraw(tx, env, after)
    return after
