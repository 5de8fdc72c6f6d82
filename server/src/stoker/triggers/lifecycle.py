"""
Execution of triggers: starts as many deployments at a time as permitted, until all targets have ended.

The targets of one server run one after the other, in their order: each is blocked until the previous one has ended,
and starts in the same transaction. So the number of running targets is that of the servers on which the trigger runs.

Lock order: trigger, then deployment.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from stoker.deployments import run_end, service
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.run_plan import RunRequest
from stoker.model.config import Content
from stoker.model.deployment import PREVIEW, Deployment, Removed, RunEnded, RunRestarted
from stoker.model.errors import Conflict, EntityNotFound, Invalid, StokerError
from stoker.model.server import Server
from stoker.model.stack import Status
from stoker.model.trigger import Mode, Stopped, Target, TargetStatus, Trigger, TriggerStatus, count_canaries
from stoker.policy import rules
from stoker.store import deployments, servers, targets, triggers
from stoker.store.maintenance import in_batches
from stoker.store.open import Store
from stoker.store.tx import Tx, Wake
from stoker.triggers.results import count_end, count_target, drop_queue, finish

_log = structlog.get_logger("stoker.triggers")

#: Kind of the job that continues a trigger whose work exceeds one transaction.
GO_ON = "trigger.go_on"
#: Deployments that one transaction starts or stops at most.
SHARE = 200

#: Deployments that one transaction deletes. Each gives its server's document a new revision, so the pauses between the
#: transactions also keep the servers of a large trigger from polling at the same time.
_BATCH = 50
#: Deployments started between two checks whether other writers wait.
_TURN = 40


def preview_problem(server: Server) -> str | None:
    """Return why the server cannot preview, or None. An agent that does not know the mode would apply the config."""
    if PREVIEW in server.modes:
        return None
    version = f" (version {server.agent_version})" if server.agent_version else ""
    return f"The agent of server {server.name}{version} cannot preview: upgrade it, or have it connect once"


def has_windows(server: Server) -> bool:
    """Return whether a run waits for a maintenance window of the server unless one is open."""
    return bool(rules.read(server.policy or {}).windows)


def start(tx: Tx, env: DeploymentEnv, trigger: Trigger, content: Content, on: Sequence[Target]) -> Trigger:
    """Store a new trigger with its targets and start its first deployments. Targets of one server are neighbors."""
    previous_ids = (None, *(target.server_id for target in on))
    placed = [replace(target, blocked=target.server_id == id) for id, target in zip(previous_ids, on, strict=False)]
    first_positions = [target.position for target in placed if not target.blocked]
    canaries = count_canaries(trigger.options.canary, len(first_positions))
    options = replace(
        trigger.options,
        has_blocked=len(first_positions) < len(on),
        canary_targets=first_positions[canaries] if canaries else 0,
    )
    trigger = replace(trigger, options=options, total=len(on), queued=len(on))
    triggers.add(tx, trigger, content, placed)
    return go_on(tx, env, trigger)


def go_on(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    """
    Start, stop or replace as many deployments of a locked trigger as possible now. Ends the trigger if no deployment
    is queued or running.
    """
    if trigger.status == TriggerStatus.IN_PROGRESS and trigger.options.stopped is Stopped.CANCELLED:
        trigger = _stop_some(tx, env, trigger)
    elif trigger.status == TriggerStatus.IN_PROGRESS and trigger.options.replaced_by is not None:
        trigger = _replace_some(tx, env, trigger, trigger.options.replaced_by)
    return _continue(tx, env, trigger)


def _continue(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    """Do what ``go_on`` does, except to stop deployments: their locks come before the trigger's row."""
    if trigger.status != TriggerStatus.IN_PROGRESS:
        return trigger
    if trigger.options.stopped is not Stopped.CANCELLED:
        trigger = _begin_some(tx, env, trigger)
    if not trigger.queued and not trigger.running:
        trigger = finish(tx, trigger)
    triggers.save(tx, trigger)
    return trigger


def advance(tx: Tx, trigger_id: str, wakes: Sequence[Wake], env: DeploymentEnv) -> None:
    """Count what has happened to deployments of a trigger, and continue the trigger once. See ``Tx.wake``."""
    tx.secrets = secrets = tx.new_secrets()
    trigger = triggers.find_to_count(tx, trigger_id)
    if trigger is None:
        return
    for cause, tx.secrets in wakes:
        if isinstance(cause, RunEnded | RunRestarted | Removed):
            target = targets.of_deployment(tx, cause.deployment.id)
            trigger = trigger if target is None else _count(tx, trigger, target, cause)
    tx.secrets = secrets
    _continue(tx, env, trigger)


def _count(tx: Tx, trigger: Trigger, target: Target, cause: RunEnded | RunRestarted | Removed) -> Trigger:
    deployment, is_running = cause.deployment, target.status == TargetStatus.IN_PROGRESS
    if isinstance(cause, Removed):
        return _count_removal(tx, trigger, replace(target, deployment_id=None))
    if isinstance(cause, RunEnded):
        return count_end(tx, trigger, target, deployment, cause.was_cancelling) if is_running else trigger
    if is_running:
        return trigger
    trigger = count_target(tx, _reopen(trigger), target, TargetStatus.IN_PROGRESS, "")
    if deployment.status == Status.IN_PROGRESS:
        return trigger
    running = targets.of_deployment(tx, deployment.id)  # no signal is awaited
    return count_end(tx, trigger, running, deployment, cancelled=False) if running is not None else trigger


def _reopen(trigger: Trigger) -> Trigger:
    """Return the trigger in progress, because a deployment that had ended runs again."""
    options = trigger.options
    if trigger.status != TriggerStatus.IN_PROGRESS:
        options = replace(options, stopped=None, stopped_by=None, forced=False, replaced_by=None)
    return replace(trigger, status=TriggerStatus.IN_PROGRESS, status_reason="", ended_at=None, options=options)


def _count_removal(tx: Tx, trigger: Trigger, nameless: Target) -> Trigger:
    """Count a target whose deployment was removed. A running one counts as cancelled."""
    if nameless.status == TargetStatus.IN_PROGRESS:
        return count_target(tx, trigger, nameless, TargetStatus.CANCELLED, "Its deployment was deleted")
    revision = trigger.revision + 1
    targets.save(tx, replace(nameless, revision=revision))
    changed = replace(trigger, revision=revision)
    triggers.save(tx, changed)
    return changed


def cancel(tx: Tx, env: DeploymentEnv, trigger: Trigger, by: str, *, force: bool = False) -> Trigger:
    """
    Cancel a locked trigger: drop its queue and stop its deployments, with ``force`` without waiting for agents. It ends
    when all have ended. Raises Conflict if it has ended.
    """
    if trigger.status != TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) has ended: there is nothing to cancel.")
    options = replace(trigger.options, stopped=Stopped.CANCELLED, stopped_by=by, forced=force or trigger.options.forced)
    stopped = replace(trigger, options=options, status_reason=f"Cancelling: asked by {by}")
    return go_on(tx, env, drop_queue(tx, stopped, f"Cancelled by {by} before it was begun"))


def replace_waiting(tx: Tx, env: DeploymentEnv, trigger: Trigger, newer_id: str) -> None:
    """Cancel the targets of a locked trigger that no agent has started and that a newer trigger has too."""
    go_on(tx, env, replace(trigger, options=replace(trigger.options, replaced_by=newer_id)))


def delete(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> None:
    """Delete a locked trigger with its deployments. Raises Conflict while the trigger is in progress."""
    if trigger.status == TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) is under way: cancel it first.")
    _delete_runs(tx, env, targets.list_started(tx, trigger.id, trigger.total))
    triggers.delete(tx, trigger)


def delete_most(store: Store, env: DeploymentEnv, large: Trigger) -> None:
    """
    Delete deployments of a trigger with many in several transactions, so that few remain for ``delete``; none while the
    trigger is in progress.
    """

    def delete_part(tx: Tx, most: int) -> int:
        trigger = triggers.find(tx, large.id, for_update=True)
        if trigger is None or trigger.status == TriggerStatus.IN_PROGRESS:
            return 0
        started = targets.list_started(tx, large.id, 2 * most)
        part = started[: max(0, len(started) - most)]
        _delete_runs(tx, env, part)
        for target in part:
            targets.save(tx, replace(target, deployment_id=None))
        return len(part)

    if large.total > _BATCH:
        in_batches(store, delete_part, _BATCH)


def purge(store: Store, env: DeploymentEnv, trigger_id: str) -> None:
    """Delete a trigger with its deployments in several transactions, unless it is in progress or is retried."""
    with store.read() as tx:
        ended = triggers.find(tx, trigger_id)
    if ended is not None:
        delete_most(store, env, ended)

    def delete_rest(tx: Tx) -> None:
        trigger = triggers.find(tx, trigger_id, for_update=True)
        if trigger is not None and trigger.status != TriggerStatus.IN_PROGRESS:
            delete(tx, env, trigger)

    store.write(delete_rest, background=True, durable=False)


def _delete_runs(tx: Tx, env: DeploymentEnv, of_targets: Sequence[Target]) -> None:
    for target in of_targets:
        deployment = deployments.find(tx, target.deployment_id or "", for_update=True)
        if deployment is not None:
            run_end.withdraw(tx, env, deployment)


def _begin_some(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    """Start the targets that may start now, up to the limit of one transaction, after which a job continues."""
    left = SHARE
    while trigger.queued and not trigger.options.stopped and (room := _free_slots(trigger)):
        if not left or (left < SHARE and tx.should_yield):
            env.work.defer_once(tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
            break
        # While the canaries run, only the targets on them may start.
        last = trigger.options.canary_targets or trigger.total
        turn = targets.list_startable(tx, trigger.id, last, min(room, left, _TURN))
        if turn:
            left -= len(turn)
            trigger = _begin(tx, env, trigger, turn)
        elif trigger.options.canary_targets and not trigger.running:
            trigger = _end_canary(tx, trigger)
        else:
            break
    return trigger


def _begin(tx: Tx, env: DeploymentEnv, trigger: Trigger, turn: Sequence[Target]) -> Trigger:
    """Start these targets, unless too many fail."""
    content = triggers.content(tx, trigger.id)
    ids = [target.server_id for target in turn]
    servers.prime(tx, ids)
    servers.prime_governed(tx, ids)
    for target in turn:
        if not trigger.options.stopped:
            trigger = _begin_one(tx, env, trigger, content, target)
    tx.cache.clear()
    return trigger


def _end_canary(tx: Tx, trigger: Trigger) -> Trigger:
    """Let the other servers start if all canaries have succeeded. Otherwise, drop them."""
    options = replace(trigger.options, canary_targets=0)
    if trigger.complete == trigger.options.canary_targets:
        return replace(trigger, options=options)
    reason = f"{trigger.failed} failed and {trigger.cancelled} were cancelled on the canaries"
    stopped = replace(trigger, options=replace(options, stopped=Stopped.CANARY), status_reason=reason)
    return drop_queue(tx, stopped, f"Not begun: {reason}")


def _free_slots(trigger: Trigger) -> int:
    """Return how many more deployments may run at the same time."""
    return max(0, (trigger.options.max_concurrent or trigger.total) - trigger.running)


def _begin_one(tx: Tx, env: DeploymentEnv, trigger: Trigger, content: Content, target: Target) -> Trigger:
    """Start a target. A failure of one server does not affect the others."""
    try:
        with tx.savepoint():
            deployment = _run(tx, env, trigger, content, target)
    except StokerError as error:
        return count_target(tx, trigger, target, TargetStatus.FAILED, error.message)
    except tx.FAULTS:
        raise
    except Exception as error:
        _log.exception("trigger.target_failed", trigger_id=trigger.id, server_id=target.server_id)
        return count_target(tx, trigger, target, TargetStatus.FAILED, f"Internal error: {type(error).__name__}")
    started = replace(target, deployment_id=deployment.id)
    if deployment.status == Status.IN_PROGRESS:
        return count_target(tx, trigger, started, TargetStatus.IN_PROGRESS, "")
    return count_target(tx, trigger, started, TargetStatus.COMPLETE, deployment.status_reason or "")


def _run(tx: Tx, env: DeploymentEnv, trigger: Trigger, content: Content, target: Target) -> Deployment:
    server = servers.find(tx, target.server_id)
    if server is None:
        raise EntityNotFound(f"Server {target.server_name} was removed")
    is_preview = trigger.options.mode is Mode.PREVIEW
    if is_preview and (problem := preview_problem(server)):
        raise Invalid(problem)
    if trigger.options.require_window and not has_windows(server):  # it had one when the trigger was created
        raise Invalid(f"require_window: server {server.name} has no maintenance window any more")
    request = RunRequest(
        content=content,
        action=trigger.action,
        name=target.name,
        project_id=trigger.project_id,
        server_id=server.id,
        trigger_id=trigger.id,
        input_values={**target.input_values, **trigger.input_values},
        # The agent reports a preview over its own channel, whatever the config's own transport is.
        signal_transport=None if is_preview else trigger.options.signal_transport,
        timeout=trigger.options.timeout,
        requested_by=trigger.requested_by,
        mode=PREVIEW if is_preview else None,
        secret=trigger.options.secret,
    )
    return service.start_run(tx, env, request)


def _stop_some(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    reason = f"Cancelled by {trigger.options.stopped_by}"
    running = targets.to_stop(tx, trigger.id, SHARE, again=trigger.options.forced)
    for target in running:
        trigger = _cancel_target(tx, env, trigger, target, reason, force=trigger.options.forced)
    if len(running) == SHARE:
        env.work.defer_once(tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
    return trigger


def _replace_some(tx: Tx, env: DeploymentEnv, trigger: Trigger, newer_id: str) -> Trigger:
    replaced = targets.list_replaced(tx, trigger.id, newer_id, SHARE)
    for target in replaced:
        trigger = _cancel_target(tx, env, trigger, target, "Replaced by the run of a later time of its schedule")
    if len(replaced) == SHARE:
        env.work.defer_once(tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
        return trigger
    return replace(trigger, options=replace(trigger.options, replaced_by=None))


def _cancel_target(
    tx: Tx, env: DeploymentEnv, trigger: Trigger, target: Target, reason: str, *, force: bool = False
) -> Trigger:
    """Cancel a queued or running target. Return the trigger, unchanged if an agent has to stop the run first."""
    deployment = deployments.find(tx, target.deployment_id, for_update=True) if target.deployment_id else None
    if deployment is None:
        return count_target(tx, trigger, target, TargetStatus.CANCELLED, reason)
    stop = run_end.force_fail if force else run_end.cancel
    stopped = stop(tx, env.work, deployment, reason)
    if stopped.status == Status.IN_PROGRESS:
        return trigger
    return count_target(tx, trigger, target, TargetStatus.CANCELLED, stopped.status_reason or "")
