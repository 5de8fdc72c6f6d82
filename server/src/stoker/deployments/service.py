"""
The life of a deployment: start and end of its runs, and its removal. The path is the same for every owner.

All functions act within the caller's write transaction. Every run of every deployment starts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from msgspec.structs import asdict, replace

from stoker.deployments import checks, deadlines, owners, run_end
from stoker.deployments.deadlines import cancel_deadline, postpone_deadline, set_deadline
from stoker.deployments.derive import without_secrets
from stoker.deployments.hook_check import refuse_missing_hook
from stoker.deployments.owners import DeploymentEnv, client_target
from stoker.deployments.run_plan import WAITING, PlannedRun, RunRequest, list_pending, plan_rerun, plan_run, plan_undo
from stoker.deployments.signals import read_code
from stoker.deployments.undo import find_undo
from stoker.model import wake
from stoker.model.check import CheckSettings
from stoker.model.config import Config
from stoker.model.delivered_hook import delivered
from stoker.model.deployment import PREVIEW, Deployment, RunState
from stoker.model.errors import Conflict
from stoker.model.status import Action, Status
from stoker.policy.authorizer import Admission, AuthorizationRequest
from stoker.store import audit, configs, deployments
from stoker.store import runs as stored
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx
from stoker.transports.base import TransportTarget, needs_provisioning
from stoker.work import Work

NOT_WAITING = "Not waiting for outputs signal"
_SUPERSEDED = "A newer run took its place"
_NO_OUTPUT: Mapping[str, Any] = {"stdout_bytes": 0, "stderr_bytes": 0, "stdout_held": None, "stderr_held": None}


def start_run(
    tx: Tx,
    env: DeploymentEnv,
    request: RunRequest,
    *,
    deployment_id: str | None = None,
    before: Deployment | None = None,
) -> Deployment:
    """
    Derive a config and start its run, as the first of a new deployment or as a later one of the deployment ``before``.

    ``deployment_id``: the id of a new deployment. Returns the deployment. Raises Invalid, UserParameterMissing,
    DeploymentRefused, and Conflict if the server's agent has no hook for the run. For the runs of a stack, the stack's
    operation has found that out before.
    """
    if request.resource is None:
        refuse_missing_hook(tx, request.content, request.project_id, request.server_id, request.action)
    id = deployment_id or str(uuid4())
    run = plan_run(tx, env, request, id)
    if before is not None:
        return _start(tx, env, run, before)
    return _start(tx, env, run, _new_deployment(tx, run, id), is_first=True)


def restart_run(
    tx: Tx, env: DeploymentEnv, before: Deployment, requested_by: str | None, wanted: Deployment | None = None
) -> Deployment:
    """
    Start another run of the same config, or of what ``wanted`` names: a config, and inputs.

    Raises DeploymentRefused, EntityNotFound.
    """
    run = plan_rerun(tx, env, wanted or before, requested_by)
    return _start(tx, env, run, before, output_values=(wanted or before).output_values)


def run_config(
    tx: Tx,
    env: DeploymentEnv,
    wanted: Deployment,
    config: Config,
    requested_by: str,
    before: Deployment | None = None,
) -> Deployment:
    """
    Run a client's config unchanged, as in Heat: as the first run of the new deployment ``wanted``, or as the next one
    of ``before``, the deployment as it is stored. Return the deployment. Raises DeploymentRefused, and Conflict if the
    server's agent has no hook for the config.

    If the server may have run the config for any deployment, the run is one of a copy: agents run each config once.
    """
    if wanted.status in (None, Status.IN_PROGRESS):
        refuse_missing_hook(tx, config, wanted.project_id, wanted.server_id, wanted.action)
    if wanted.status == Status.IN_PROGRESS and deployments.has_run_config(tx, wanted.server_id, wanted.config_id):
        if before is not None:
            return restart_run(tx, env, before, requested_by, wanted)
        return _start(tx, env, plan_rerun(tx, env, wanted, requested_by), wanted, is_first=True)
    number = 1 if before is None else before.run_number + 1
    queued = queue_run(tx, authorize(tx, env, wanted, config, requested_by), requested_by, number=number)
    if before is None:
        return _store_first(tx, queued)
    _close_transport(tx, env, before)
    return _supersede_run(tx, env.work, before, queued)


def authorize(tx: Tx, env: DeploymentEnv, deployment: Deployment, config: Config, requested_by: str) -> Deployment:
    """
    Apply the server's policy to a deployment of a client's config.

    Returns the deployment as admitted, not stored yet. Raises DeploymentRefused.
    """
    request = _authorization(tx, deployment, config, action=deployment.action, actor=requested_by)
    admission = env.authorizer.authorize(tx, request)
    is_changed = (admission.admitted, admission.held_by) != (deployment.admitted, deployment.held_by)
    has_reason = is_changed and admission.reason is not None and deployment.status == Status.IN_PROGRESS
    reason = admission.reason if has_reason else deployment.status_reason
    return replace(deployment, admitted=admission.admitted, held_by=admission.held_by, status_reason=reason)


def signal(tx: Tx, env: DeploymentEnv, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """Apply a signal to a locked deployment and tell its owner. Late and repeated signals change nothing."""
    return tell_end(tx, env, deployment, run_end.apply_signal(tx, env.work, deployment, values, log_bytes))


def fail(tx: Tx, env: DeploymentEnv, args: Mapping[str, Any]) -> None:
    """
    Job: fail a run whose deadline has passed, or whose server was removed.

    ``args``: ``deployment_id``, ``config_id`` of the run, and ``reason`` unless the run timed out.
    """
    deployment = owners.find_locked(tx, args["deployment_id"])
    if deployment is None or deployment.config_id != args["config_id"] or deployment.has_ended:
        return
    reason = args.get("reason")
    if reason is not None or not postpone_deadline(tx, env.work, deployment, args):
        reason = reason or f"Timed out: {deployment.status_reason}"
        tell_end(tx, env, deployment, run_end.fail(tx, env.work, deployment, reason))


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
    return tell_end(tx, env, before, stop(tx, env.work, before, f"Cancelled by {requested_by}"))


def lock_failed(tx: Tx, deployment: Deployment) -> Deployment:
    """Lock a deployment that is to be retried, and return it. Raises Conflict if it has not failed."""
    failed = owners.lock(tx, deployment)
    if failed.status != Status.FAILED:
        raise Conflict(
            f"The deployment ({failed.id}) is {failed.status or 'not under way'}: only what failed is retried."
        )
    return failed


def run_again(tx: Tx, env: DeploymentEnv, ended: Deployment, requested_by: str) -> Deployment:
    """Run a locked deployment that has ended again in place, and tell its owner. Raises DeploymentRefused."""
    started = restart_run(tx, env, ended, requested_by)
    tx.wake(wake.Owner.of(started), wake.RunRestarted(started))
    return started


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
    tx.wake(wake.Owner.of(removed), wake.Removed(removed))


def _undo(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> bool:
    """Start the run that undoes the deployment. Return False if there is nothing to undo."""
    if deployment.removing and deployment.status == Status.IN_PROGRESS:
        return True
    undo = find_undo(tx, deployment, deadlines.limit_of(tx, deployment))
    if undo is None:
        return False
    _start(tx, env, plan_undo(tx, env, deployment, requested_by, undo), deployment, removing=True)
    return True


def withdraw(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """
    Delete a deployment with its runs, their output, its derived config and the object or queue for its results.

    The object or queue of a resource stays until the resource is deleted.
    """
    cancel_deadline(tx, env.work, deployment.config_id)
    if deployment.resource_id is None:
        _close_transport(tx, env, deployment)
    deployments.delete(tx, deployment.id)
    _release_config(tx, deployment)
    tx.bump_or_drop_document(deployment.server_id)
    tx.notify(deployment_topic(deployment.id))


def _release_config(tx: Tx, deployment: Deployment) -> None:
    """Delete the derived config that a deployment leaves, or record that the server may have run a client's."""
    if deployment.resource_id is None and deployment.trigger_id is None:
        deployments.record_past_config(tx, deployment.server_id, deployment.config_id)
    configs.delete_owned(tx, deployment.config_id)


def _close_transport(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """Close the object or queue for the result of the current run of a deployment without a resource."""
    transport = env.transports.signal_transports.get(deployment.signal_transport or "")
    if needs_provisioning(transport):
        target = client_target(deployment.id, deployment.project_id, run=deployment.run_number)
        transport.close(tx, env.platform, target)


def _open_transport(tx: Tx, env: DeploymentEnv, run: PlannedRun, before: Deployment) -> None:
    """Open the object or queue for the result of a run, and close that of the previous run."""
    if run.target is not None and needs_provisioning(run.transport):
        run.transport.open(tx, env.platform, run.target)
        previous = int(run.target.run) - 1
        if before.resource_id is not None and previous:
            run.transport.close(tx, env.platform, replace(run.target, run=str(previous)))
    if before.resource_id is None:
        _close_transport(tx, env, before)


def queue_run(tx: Tx, deployment: Deployment, requested_by: str | None, *, number: int, **changes: Any) -> Deployment:
    """
    Return the deployment with a run that begins now, or that its client has ended already. Every run begins here.

    ``changes`` are further fields that change with the run.
    """
    queued = replace(deployment, **changes) if changes else deployment
    is_over = queued.status != Status.IN_PROGRESS
    state = RunState.PENDING_WINDOW if queued.held_by else RunState.QUEUED
    return replace(
        queued,
        run_number=number,
        state=RunState.DONE if is_over else state,
        queued_at=tx.now,
        sent_at=None,
        channel=None,
        started_at=None,
        ended_at=tx.now if is_over else None,
        percent=None,
        message=None,
        last_heartbeat_at=None,
        status_code=read_code(queued.output_values) if is_over else None,
        requested_by=requested_by,
        cancelling=False,
        changed=None,
        changed_items=0,
        changes=(),
        **_NO_OUTPUT,
    )


def _store_first(tx: Tx, deployment: Deployment) -> Deployment:
    deployments.add(tx, deployment)
    tx.bump_document(deployment.server_id)
    return deployment


def _supersede_run(tx: Tx, work: Work, before: Deployment, changed: Deployment) -> Deployment:
    """
    Store a deployment with its next run, and return it. The previous run, as ``before`` is stored, becomes history.

    The agent's report on the previous run is not expected any more, and its derived config is no longer needed.
    """
    cancel_deadline(tx, work, before.config_id)
    previous = before.run
    if previous.ended_at is None:
        ended = {"state": RunState.DONE, "ended_at": tx.now, "status": Status.FAILED, "status_reason": _SUPERSEDED}
        previous = replace(previous, **ended)
    stored.add(tx, previous)
    deployments.save(tx, changed)
    checks.reset(tx, changed)
    _release_config(tx, before)
    tx.bump_document(changed.server_id)
    tx.notify(deployment_topic(changed.id))
    return changed


def _start(
    tx: Tx, env: DeploymentEnv, run: PlannedRun, before: Deployment, *, is_first: bool = False, **changes: Any
) -> Deployment:
    """
    Start a run, unless the server's policy denies it. No policy denies the run with which a resource cleans up.

    ``before`` is the deployment as it is stored; ``changes`` are its fields that the run changes besides. Outputs of
    the previous run stay readable until the new run reports its own.
    """
    request, config, awaits_signal = run.request, run.config, run.awaits_signal
    admission = _admit(tx, env, run, before, is_first=is_first)
    dependencies = list_pending(tx, config, before.server_id, before.id) if request.mode is None else ()
    # A new deployment that applies a config without secrets replaces nothing that contained one.
    shows_present = not (is_first and request.mode is None and not config.has_secrets)
    configs.add(tx, config, server_id=before.server_id, shows_present=shows_present)
    _open_transport(tx, env, run, before)
    waiting = f"Waiting for {', '.join(dependencies)} on this server" if dependencies else WAITING
    values = request.input_values
    started = queue_run(
        tx,
        before,
        request.requested_by,
        number=1 if is_first else before.run_number + 1,
        config_id=config.id,
        action=request.action,
        status=Status.IN_PROGRESS if awaits_signal else Status.COMPLETE,
        # Without a signal, the reason never changes again, so it must not mention a maintenance window.
        status_reason=(admission.reason or waiting) if awaits_signal else NOT_WAITING,
        # A client's config has the client's own values.
        input_values=without_secrets(values, config.inputs) if run.transport else values,
        signal_transport=run.transport.signal_name if run.transport else None,
        held_by=admission.held_by,
        mode=request.mode,
        admitted=admission.admitted,
        updated_at=None if is_first else tx.now,
        **changes,
    )
    if is_first:
        _store_first(tx, started)
    else:
        _supersede_run(tx, env.work, before, started)
    if request.checks is not None:
        settings = request.checks.over(CheckSettings.of(config.options))
        if settings != CheckSettings() or not is_first:
            checks.configure(tx, env.work, started, settings)
    # A run that waits for a maintenance window gets its deadline when the window opens.
    if request.timeout is not None and awaits_signal and started.held_by is None:
        set_deadline(tx, env.work, started.id, config.id, request.timeout, limits_queue=request.limits_queue)
    return started


def _admit(tx: Tx, env: DeploymentEnv, run: PlannedRun, before: Deployment, *, is_first: bool) -> Admission:
    request = run.request
    authorization = _authorization(
        tx,
        before,
        run.config,
        action=request.action,
        actor=request.requested_by,
        is_preview=request.mode == PREVIEW,
        target=run.target,
    )
    if request.action == Action.DELETE and before.resource_id is not None and not is_first:
        return env.authorizer.authorize_cleanup(tx, authorization, admitted=before.admitted)
    return env.authorizer.authorize(tx, authorization)


def _new_deployment(tx: Tx, run: PlannedRun, id: str) -> Deployment:
    """Return a deployment that has not started."""
    request, resource = run.request, run.request.resource
    return Deployment(
        id=id,
        project_id=request.project_id,
        server_id=request.server_id,
        config_id=run.config.id,
        action=request.action,
        status=None,
        status_reason=None,
        input_values={},
        output_values={},
        created_at=tx.now,
        stack_id=resource.stack_id if resource else None,
        resource_id=resource.resource_id if resource else None,
        trigger_id=request.trigger_id,
    )


def _authorization(
    tx: Tx,
    deployment: Deployment,
    config: Config,
    *,
    action: str | None,
    actor: str | None,
    is_preview: bool = False,
    target: TransportTarget | None = None,
) -> AuthorizationRequest:
    """Return the request for a run of ``config``. ``target``: the remote end for its result, unless it is as before."""
    names: Mapping[str, str | None] = {}
    if deployment.resource_id is not None:
        names = audit.names_of(tx, deployment.id) if target is None else asdict(target)
    return AuthorizationRequest(
        project_id=deployment.project_id,
        server_id=deployment.server_id,
        deployment_id=deployment.id,
        action=action,
        group=config.group,
        hook=delivered(config.options) if config.options else None,
        config_name=config.name,
        stack_id=deployment.stack_id,
        trigger_id=deployment.trigger_id,
        is_preview=is_preview,
        actor=actor,
        stack_name=names.get("stack_name"),
        resource_name=names.get("resource_name"),
    )


def tell_end(tx: Tx, env: DeploymentEnv, before: Deployment, after: Deployment) -> Deployment:
    """Tell the owner if the run has ended, and remove a deployment that the run has undone. Return the deployment."""
    if after.has_ended and not before.has_ended:
        tx.wake(wake.Owner.of(after), wake.RunEnded(after, before.cancelling))
        if after.removing and after.status == Status.COMPLETE:
            withdraw(tx, env, after)
    return after
