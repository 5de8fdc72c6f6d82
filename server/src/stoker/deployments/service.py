"""
The life of a deployment: the start of its runs, and its removal. The path is the same for every owner.

All functions act within the caller's write transaction. Every run of every deployment starts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from msgspec.structs import asdict, replace

from stoker.deployments import checks, owners, run_end
from stoker.deployments.derive import without_secrets
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.run_end import cancel_deadline, set_deadline
from stoker.deployments.run_plan import (
    WAITING,
    PlannedRun,
    RunRequest,
    find_undo,
    list_pending,
    plan_rerun,
    plan_run,
    plan_undo,
)
from stoker.deployments.runs import read_code
from stoker.model.config import UNGROUPED, Config, Content, find_delivered_hook, needed_groups
from stoker.model.deployment import PREVIEW, CheckSettings, Deployment, Removed, RunRestarted, RunState
from stoker.model.errors import Conflict
from stoker.model.stack import Action, Status
from stoker.policy.authorizer import Admission, AuthorizationRequest
from stoker.store import audit, configs, deployments, servers
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
    Derive a config and start its run, as the first of a deployment (``deployment_id``) or as a later one of ``before``.
    Return the deployment. Raises Invalid, UserParameterMissing, DeploymentRefused, and Conflict for a missing hook,
    which a stack's operation has found out before.
    """
    if request.resource is None:
        _refuse_missing_hook(tx, request.content, request.project_id, request.server_id, request.action)
    id = deployment_id or str(uuid4())
    run = plan_run(tx, env, request, id)
    if before is not None:
        return _start(tx, env, run, before)
    return _start(tx, env, run, run.new_deployment(id), is_first=True)


def restart_run(
    tx: Tx, env: DeploymentEnv, before: Deployment, requested_by: str | None, wanted: Deployment | None = None
) -> Deployment:
    """Start another run of the same config, or of config and inputs of ``wanted``. Raises DeploymentRefused."""
    wanted = wanted or before
    run = plan_rerun(tx, env, wanted, requested_by)
    return _start(tx, env, run, before, output_values=wanted.output_values, removing=wanted.removing)


def run_config(
    tx: Tx,
    env: DeploymentEnv,
    wanted: Deployment,
    config: Config,
    requested_by: str,
    before: Deployment | None = None,
) -> Deployment:
    """
    Run a client's config unchanged, or a copy if the server may have run it: agents run each once. It is the first run
    of ``wanted``, or the next one of ``before``, as stored. Return the deployment. Raises DeploymentRefused, Conflict
    for a missing hook.
    """
    if wanted.status in (None, Status.IN_PROGRESS):
        _refuse_missing_hook(tx, config, wanted.project_id, wanted.server_id, wanted.action)
    if wanted.status == Status.IN_PROGRESS and deployments.has_run_config(tx, wanted.server_id, wanted.config_id):
        if before is not None:
            return restart_run(tx, env, before, requested_by, wanted)
        return _start(tx, env, plan_rerun(tx, env, wanted, requested_by), wanted, is_first=True)
    number = 1 if before is None else before.run_number + 1
    queued = queue_run(tx, authorize(tx, env, wanted, config, requested_by), requested_by, number=number)
    if before is None:
        return _store_first(tx, queued)
    run_end.close_transport(tx, env, before)
    return _supersede_run(tx, env.work, before, queued)


def _refuse_missing_hook(
    tx: Tx, content: Content | Config, project_id: str, server_id: str, action: str | None
) -> None:
    """Raise Conflict if the project's server certainly lacks the hook for a run of the content."""
    groups = needed_groups(content.group, content.config, content.options, (action or "CREATE",))
    server = servers.find(tx, server_id) if groups else None
    if server is not None and (reason := server.describe_missing_hook(groups, project_id)):
        raise Conflict(f"The {reason}.")


def authorize(tx: Tx, env: DeploymentEnv, deployment: Deployment, config: Config, requested_by: str) -> Deployment:
    """Return the client's deployment as the server's policy admits it, not stored yet. Raises DeploymentRefused."""
    admission = _admit(tx, env, deployment, config, action=deployment.action, actor=requested_by)
    is_changed = (admission.admitted, admission.held_by) != (deployment.admitted, deployment.held_by)
    has_reason = is_changed and admission.reason is not None and deployment.status == Status.IN_PROGRESS
    reason = admission.reason if has_reason else deployment.status_reason
    return replace(deployment, admitted=admission.admitted, held_by=admission.held_by, status_reason=reason)


def cancel(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str, *, force: bool = False) -> Deployment:
    """Cancel the current run; with ``force`` without waiting for its agent. Raises Conflict if it has ended."""
    before = owners.lock(tx, deployment)
    if before.status != Status.IN_PROGRESS:
        raise Conflict(
            f"The deployment ({before.id}) is {before.status or 'not under way'}: there is nothing to cancel."
        )
    stop = run_end.force_fail if force else run_end.cancel
    return run_end.tell_end(tx, env, before, stop(tx, env.work, before, f"Cancelled by {requested_by}"))


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
    tx.wake(started.owner, RunRestarted(started))
    return started


def remove(
    tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None = None, *, force: bool = False
) -> None:
    """
    Remove a deployment for a client. If its config says so, a client's own is undone first, unless ``force``, and
    disappears then.

    A waiting resource fails unless it is being deleted, and is created again when an update needs it; a trigger counts
    the deployment as cancelled. Raises Invalid if the server's agent cannot undo, DeploymentRefused.
    """
    removed = owners.lock(tx, deployment)
    if removed.is_of_client and not force and _undo(tx, env, removed, requested_by):
        return
    run_end.withdraw(tx, env, removed)
    tx.wake(removed.owner, Removed(removed))


def _undo(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> bool:
    """Start the run that undoes the deployment. Return False if there is nothing to undo."""
    if deployment.removing and deployment.status == Status.IN_PROGRESS:
        return True
    undo = find_undo(tx, deployment, run_end.limit_of(tx, deployment))
    if undo is None:
        return False
    _start(tx, env, plan_undo(tx, env, deployment, requested_by, undo), deployment, removing=True)
    return True


def _open_transport(tx: Tx, env: DeploymentEnv, run: PlannedRun, before: Deployment) -> None:
    """Open the object or queue for the result of a run, and close that of the previous run."""
    if run.target is not None and needs_provisioning(run.transport):
        run.transport.open(tx, env.platform, run.target)
        previous = int(run.target.run) - 1
        if before.resource_id is not None and previous:
            run.transport.close(tx, env.platform, replace(run.target, run=str(previous)))
    if before.resource_id is None and before.signal_transport is not None:
        run_end.close_transport(tx, env, before)


def queue_run(tx: Tx, deployment: Deployment, requested_by: str | None, *, number: int, **changes: Any) -> Deployment:
    """
    Return the deployment with a run that begins now, or that its client has ended already, and these ``changes``. Every
    run begins here.
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
        status_code=read_code(queued.output_values) if is_over and queued.output_values else None,
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
    Store a deployment with its next run, and return it. The previous run becomes history, its report is not awaited any
    more, and its derived config goes.
    """
    cancel_deadline(tx, work, before.config_id)
    previous = before.run
    if previous.ended_at is None:
        ended = {"state": RunState.DONE, "ended_at": tx.now, "status": Status.FAILED, "status_reason": _SUPERSEDED}
        previous = replace(previous, **ended)
    stored.add(tx, previous)
    deployments.save(tx, changed)
    checks.reset(tx, changed)
    run_end.release_config(tx, before)
    tx.bump_document(changed.server_id)
    tx.notify(deployment_topic(changed.id))
    return changed


def _start(
    tx: Tx, env: DeploymentEnv, run: PlannedRun, before: Deployment, *, is_first: bool = False, **changes: Any
) -> Deployment:
    """
    Start a run, unless the server's policy denies it. ``before``: the deployment as stored; ``changes``: its other
    fields that change. Outputs stay readable until the new run reports its own.
    """
    request, config, awaits_signal = run.request, run.config, run.awaits_signal
    cleans_up = request.action == Action.DELETE and before.resource_id is not None and not is_first
    admission = _admit(
        tx,
        env,
        before,
        config,
        action=request.action,
        actor=request.requested_by,
        is_preview=request.mode == PREVIEW,
        was_admitted=before.admitted if cleans_up else None,
        target=run.target,
    )
    pending = list_pending(tx, config, before.server_id, before.id) if request.mode is None else ()
    # A new deployment that applies a config without secrets replaces nothing that contained one.
    shows_present = not (is_first and request.mode is None and not config.has_secrets)
    configs.add(tx, config, server_id=before.server_id, shows_present=shows_present)
    _open_transport(tx, env, run, before)
    waiting = f"Waiting for {', '.join(pending)} on this server" if pending else WAITING
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
        input_values=without_secrets(request.input_values, config.inputs) if run.transport else request.input_values,
        signal_transport=run.transport.signal_name if run.transport else None,
        held_by=admission.held_by,
        mode=request.mode,
        admitted=admission.admitted,
        updated_at=None if is_first else tx.now,
        **changes,
    )
    _store_run(tx, env.work, run, before, started, is_first=is_first)
    return started


def _store_run(tx: Tx, work: Work, run: PlannedRun, before: Deployment, started: Deployment, *, is_first: bool) -> None:
    """Store a deployment with a run that has started, with the run's deadline and how the deployment is checked."""
    request, config = run.request, run.config
    if is_first:
        _store_first(tx, started)
    else:
        _supersede_run(tx, work, before, started)
    if request.checks is not None:
        settings = request.checks.over(CheckSettings.of(config.options))
        if settings != CheckSettings() or not is_first:
            checks.configure(tx, work, started, settings)
    # A run that waits for a maintenance window gets its deadline when the window opens.
    if request.timeout is not None and run.awaits_signal and started.held_by is None:
        set_deadline(tx, work, started.id, config.id, request.timeout, limits_queue=request.limits_queue)


def _admit(
    tx: Tx,
    env: DeploymentEnv,
    deployment: Deployment,
    config: Config,
    *,
    action: str | None,
    target: TransportTarget | None = None,
    **more: Any,
) -> Admission:
    """
    Return the conditions on which a run of ``config`` starts. ``target``: the remote end for its result, unless it is
    as before. ``more``: other fields of the request. Raises DeploymentRefused.
    """
    names: Mapping[str, str | None] = {}
    if deployment.resource_id is not None:
        names = audit.names_of(tx, deployment.id) if target is None else asdict(target)
    request = AuthorizationRequest(
        project_id=deployment.project_id,
        server_id=deployment.server_id,
        deployment_id=deployment.id,
        action=f"run {action or ''}".strip(),
        group=config.group or UNGROUPED,
        hook=find_delivered_hook(config.options) if config.options else None,
        config_name=config.name,
        stack_id=deployment.stack_id,
        trigger_id=deployment.trigger_id,
        stack_name=names.get("stack_name"),
        resource_name=names.get("resource_name"),
        **more,
    )
    return env.authorizer.authorize(tx, request)


def change(
    tx: Tx, env: DeploymentEnv, deployment: Deployment, changes: Mapping[str, Any], requested_by: str
) -> Deployment:
    """
    Apply the changes of a REST client. Another config, or IN_PROGRESS after an end, starts a run; a status that ends
    the deployment acts as a report. Agents run each config once, so what the server may have run is copied.

    Raises Conflict if a stack decides what the deployment runs, DeploymentRefused, EntityNotFound.
    """
    before = owners.lock(tx, deployment)
    wanted = replace(before, **changes, updated_at=tx.now)
    reopens = _is_pending(wanted) and not _is_pending(before)
    if wanted.config_id == before.config_id and not reopens:
        changed = _change_status(tx, env, before, wanted, requested_by)
    elif before.resource_id is not None:
        raise Conflict(
            f"The deployment ({before.id}) belongs to a resource of the stack ({before.stack_id}), which decides what"
            " it runs: update the stack, or retry the deployment."
        )
    else:
        changed = _start_changed(tx, env, before, wanted, requested_by)
        if reopens:
            tx.wake(changed.owner, RunRestarted(changed))
    return run_end.tell_end(tx, env, before, changed)


def _is_pending(deployment: Deployment) -> bool:
    return deployment.status == Status.IN_PROGRESS


def _change_status(tx: Tx, env: DeploymentEnv, before: Deployment, wanted: Deployment, requested_by: str) -> Deployment:
    if before.status is None and wanted.has_ended:
        return _start_first(tx, wanted, requested_by)
    if not wanted.has_ended:
        return run_end.save(tx, wanted, deployments.save)
    code = before.status_code if wanted.output_values == before.output_values else read_code(wanted.output_values)
    return run_end.finish_run(tx, env.work, replace(wanted, cancelling=False, status_code=code), deployments.save)


def _start_changed(tx: Tx, env: DeploymentEnv, before: Deployment, wanted: Deployment, requested_by: str) -> Deployment:
    if wanted.config_id != before.config_id:
        config = configs.get(tx, wanted.config_id, wanted.project_id)
        # The new config itself determines how results return, and takes the place of an undo.
        wanted = replace(wanted, signal_transport=None, mode=None, removing=False)
        if before.removing and wanted.action == before.action:
            wanted = replace(wanted, action=Action.UPDATE.value)
        return run_config(tx, env, wanted, config, requested_by, before)
    if before.status is None:
        config = configs.get(tx, wanted.config_id, wanted.project_id)
        return _start_first(tx, authorize(tx, env, wanted, config, requested_by), requested_by)
    old_values, new_values = (tx.secrets.redact(deployment.input_values) for deployment in (before, wanted))
    if before.signal_transport is not None and new_values != old_values:
        raise Conflict(
            f"The deployment ({before.id}) runs again with the inputs of its derived config: create another deployment,"
            " or a trigger of this one, to run it with other input_values."
        )
    started = restart_run(tx, env, before, requested_by, wanted)
    if wanted.status_reason != before.status_reason and started.held_by is None:
        started = run_end.save(tx, replace(started, status_reason=wanted.status_reason))
    return started


def _start_first(tx: Tx, wanted: Deployment, requested_by: str) -> Deployment:
    """Start the first run of a deployment that was stored without a status."""
    stored.forget(tx, wanted.id)
    return run_end.save(tx, queue_run(tx, wanted, requested_by, number=1), deployments.save)
