"""
Execution of triggers: starts as many deployments at a time as permitted, until all targets have ended.

Lock order: trigger, then deployment. A trigger counts its targets by status, so that the end of one deployment costs
the same for any number of targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from stoker.deployments import run_end, service
from stoker.deployments.env import DeploymentEnv, EndedRun, RunListener
from stoker.deployments.hook_check import describe_missing_hook, needed_groups
from stoker.deployments.owners import Trigger as TriggerOwner
from stoker.deployments.run_plan import RunRequest
from stoker.model.deployment import CANCELLED, PREVIEW, Deployment
from stoker.model.errors import Conflict, EntityNotFound, Invalid, StokerError
from stoker.model.server import Server
from stoker.model.status import Status
from stoker.model.trigger import Content, Mode, Stopped, Target, TargetStatus, Trigger, TriggerStatus
from stoker.store import deployments, server_policies, servers, targets, triggers
from stoker.store.notifier import trigger_topic
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.triggers")

#: Kind of the job that continues a trigger whose work exceeds one transaction.
GO_ON = "trigger.go_on"
#: Deployments that one transaction starts or stops at most.
SHARE = 200

#: Deployments started between two checks whether other writers wait.
_TURN = 40

#: The counter for each status of a target.
_COUNTED = {
    TargetStatus.QUEUED: "queued",
    TargetStatus.IN_PROGRESS: "running",
    TargetStatus.COMPLETE: "complete",
    TargetStatus.FAILED: "failed",
    TargetStatus.CANCELLED: "cancelled",
}


def preview_problem(server: Server) -> str | None:
    """
    Return why the server cannot show what a run would change, or None if it can.

    An agent that does not know the mode would apply the config, so it never receives such a run.
    """
    if PREVIEW in server.modes:
        return None
    version = f" (version {server.agent_version})" if server.agent_version else ""
    return f"The agent of server {server.name}{version} cannot preview: upgrade it, or have it connect once"


def start(tx: Tx, env: DeploymentEnv, trigger: Trigger, content: Content, on: Sequence[Target]) -> Trigger:
    """Store a new trigger with its targets and start its first deployments."""
    triggers.add(tx, trigger, content, on)
    return go_on(tx, env, trigger)


def go_on(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    """
    Continue a trigger: start or stop as many deployments as possible now.

    Ends the trigger if no deployment is queued or running. The trigger must be locked.
    """
    if trigger.status == TriggerStatus.IN_PROGRESS and trigger.options.stopped is Stopped.CANCELLED:
        trigger = _stop_some(tx, env, trigger)
    return _continue(tx, env, trigger)


def _continue(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    """Do what ``go_on`` does, except to stop deployments: their locks come before the trigger's row."""
    if trigger.status != TriggerStatus.IN_PROGRESS:
        return trigger
    if trigger.options.stopped is not Stopped.CANCELLED:
        trigger = _begin_some(tx, env, trigger)
    if not trigger.queued and not trigger.running:
        trigger = _finish(tx, trigger)
    triggers.save(tx, trigger)
    return trigger


class TriggerListener(RunListener):
    """Counts the ends of a trigger's deployments, and continues the trigger."""

    def run_ended(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, *, cancelled: bool = False) -> None:
        """Count the end of a locked deployment and continue its trigger."""
        trigger, target = _of(tx, deployment)
        if trigger is not None and target is not None and target.status == TargetStatus.IN_PROGRESS:
            go_on(tx, env, _count_end(tx, trigger, target, deployment, cancelled))

    def runs_ended(self, tx: Tx, env: DeploymentEnv, ended: Sequence[EndedRun]) -> None:
        """Count the ends of several deployments, and continue their triggers, each once."""
        by_trigger: dict[str, list[EndedRun]] = {}
        for run in ended:
            by_trigger.setdefault(run.deployment.trigger_id or "", []).append(run)
        for trigger_id, runs in sorted(by_trigger.items()):
            tx.secrets = secrets = tx.new_secrets()
            trigger = triggers.find_to_count(tx, trigger_id)
            for run in runs:
                tx.secrets = run.secrets
                target = targets.of_deployment(tx, run.deployment.id)
                if trigger is not None and target is not None and target.status == TargetStatus.IN_PROGRESS:
                    trigger = _count_end(tx, trigger, target, run.deployment, run.was_cancelling)
            tx.secrets = secrets
            if trigger is not None:
                _continue(tx, env, trigger)

    def run_restarted(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Reopen the trigger of a deployment that runs again after its end."""
        trigger, target = _of(tx, deployment)
        if trigger is None or target is None or target.status == TargetStatus.IN_PROGRESS:
            return
        options = trigger.options
        if trigger.status != TriggerStatus.IN_PROGRESS:
            options = replace(options, stopped=None, stopped_by=None, forced=False)
        reopened = replace(trigger, status=TriggerStatus.IN_PROGRESS, status_reason="", ended_at=None, options=options)
        triggers.save(tx, _count(tx, reopened, target, TargetStatus.IN_PROGRESS, ""))
        if deployment.status != Status.IN_PROGRESS:  # no signal is awaited
            self.run_ended(tx, env, deployment)

    def removed(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Count a deleted deployment of a trigger. A running one counts as cancelled."""
        trigger, target = _of(tx, deployment)
        if trigger is None or target is None:
            return
        nameless = replace(target, deployment_id=None)
        if target.status == TargetStatus.IN_PROGRESS:
            go_on(tx, env, _count(tx, trigger, nameless, TargetStatus.CANCELLED, "Its deployment was deleted"))
        else:
            revision = trigger.revision + 1
            targets.save(tx, replace(nameless, revision=revision))
            triggers.save(tx, replace(trigger, revision=revision))


def cancel(tx: Tx, env: DeploymentEnv, trigger: Trigger, by: str, *, force: bool = False) -> Trigger:
    """
    Cancel a locked trigger: drop its queue and stop its running deployments.

    The trigger ends when all deployments have ended. With ``force``, the trigger does not wait for agents that have to
    stop a run. Raises Conflict if the trigger has ended.
    """
    if trigger.status != TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) has ended: there is nothing to cancel.")
    options = replace(trigger.options, stopped=Stopped.CANCELLED, stopped_by=by, forced=force or trigger.options.forced)
    stopped = replace(trigger, options=options, status_reason=f"Cancelling: asked by {by}")
    return go_on(tx, env, _without_queue(tx, stopped, f"Cancelled by {by} before it was begun"))


def delete(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> None:
    """Delete a locked trigger with its deployments. Raises Conflict while the trigger is in progress."""
    if trigger.status == TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) is under way: cancel it first.")
    delete_some(tx, env, trigger)


def delete_some(tx: Tx, env: DeploymentEnv, ended: Trigger, most: int | None = None) -> int:
    """
    Delete up to ``most`` deployments of a locked trigger that has ended, or all of them.

    Deletes the trigger too if no deployment remains. Returns the number of deleted deployments.
    """
    most = ended.total if most is None else most
    remaining = targets.list_started(tx, ended.id, most + 1)
    share = remaining[:most]
    for target in share:
        deployment = deployments.find(tx, target.deployment_id or "", for_update=True)
        if deployment is not None:
            service.withdraw(tx, env, deployment)
    if len(share) == len(remaining):
        triggers.delete(tx, ended.id)
    else:
        for target in share:
            targets.save(tx, replace(target, deployment_id=None))
    return len(share)


def _begin_some(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    """Start queued targets, up to the limit of one transaction. A job continues with the rest."""
    left, content = SHARE, None
    while trigger.queued and not trigger.options.stopped and (room := _free_slots(trigger)):
        if not left or (left < SHARE and tx.should_yield):
            env.work.defer_once(tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
            break
        content = content or triggers.content(tx, trigger.id)
        turn = targets.list_queued(tx, trigger.id, min(room, left, _TURN))
        assert turn, "a trigger counts its targets"
        left -= len(turn)
        ids = [target.server_id for target in turn]
        servers.preload(tx, ids)
        server_policies.preload(tx, ids)
        for target in turn:
            if trigger.options.stopped:
                break
            trigger = _begin_one(tx, env, trigger, content, target)
        tx.preloaded.clear()
    return trigger


def _free_slots(trigger: Trigger) -> int:
    """Return how many more deployments may run at the same time."""
    return max(0, (trigger.options.max_concurrent or trigger.total) - trigger.running)


def _begin_one(tx: Tx, env: DeploymentEnv, trigger: Trigger, content: Content, target: Target) -> Trigger:
    try:
        server = servers.find(tx, target.server_id)
        if server is None:
            raise EntityNotFound(f"Server {target.server_name} was removed")
        is_preview = trigger.options.mode is Mode.PREVIEW
        if is_preview and (problem := preview_problem(server)):
            raise Invalid(problem)
        groups = needed_groups(content.group, content.config, content.options, (trigger.action,))
        if reason := describe_missing_hook(server, groups, trigger.project_id):
            raise Conflict(f"The {reason}.")
        deployment = service.start_run(
            tx,
            env,
            TriggerOwner(id=trigger.id),
            RunRequest(
                content=content,
                action=trigger.action,
                name=target.name,
                input_values={**target.input_values, **trigger.input_values},
                # The agent reports a preview over its own channel, whatever the config's own transport is.
                signal_transport=None if is_preview else trigger.options.signal_transport,
                timeout=trigger.options.timeout,
                requested_by=trigger.requested_by,
                mode=PREVIEW if is_preview else None,
                secret=trigger.options.secret,
            ),
            project_id=trigger.project_id,
            server_id=target.server_id,
        )
    except StokerError as error:  # a failure of one server must not affect the others
        return _count(tx, trigger, target, TargetStatus.FAILED, error.message)
    started = replace(target, deployment_id=deployment.id)
    if deployment.status == Status.IN_PROGRESS:
        return _count(tx, trigger, started, TargetStatus.IN_PROGRESS, "")
    return _count(tx, trigger, started, TargetStatus.COMPLETE, deployment.status_reason or "")


def _stop_some(tx: Tx, env: DeploymentEnv, trigger: Trigger) -> Trigger:
    reason = f"Cancelled by {trigger.options.stopped_by}"
    running = targets.to_stop(tx, trigger.id, SHARE, again=trigger.options.forced)
    for target in running:
        deployment = deployments.find(tx, target.deployment_id or "", for_update=True)
        if deployment is None:
            trigger = _count(tx, trigger, target, TargetStatus.CANCELLED, reason)
            continue
        stop = run_end.force_fail if trigger.options.forced else run_end.cancel
        stopped = stop(tx, env.work, deployment, reason)
        if stopped.status != Status.IN_PROGRESS:
            trigger = _count(tx, trigger, target, TargetStatus.CANCELLED, stopped.status_reason or "")
    if len(running) == SHARE:
        env.work.defer_once(tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
    return trigger


def _of(tx: Tx, deployment: Deployment) -> tuple[Trigger | None, Target | None]:
    trigger = triggers.find(tx, deployment.trigger_id, for_update=True) if deployment.trigger_id else None
    return trigger, targets.of_deployment(tx, deployment.id) if trigger else None


def _count_end(tx: Tx, trigger: Trigger, target: Target, deployment: Deployment, cancelled: bool) -> Trigger:
    """Count a target whose run has ended. ``cancelled``: its agent was instructed to stop the run."""
    status = TargetStatus.COMPLETE
    if deployment.status != Status.COMPLETE:
        status = TargetStatus.CANCELLED if cancelled or deployment.held_by == CANCELLED else TargetStatus.FAILED
    return _count(tx, trigger, target, status, deployment.status_reason or "", changed=deployment.changed)


def _count(
    tx: Tx, trigger: Trigger, target: Target, status: TargetStatus, reason: str, *, changed: bool | None = None
) -> Trigger:
    """
    Store the target's new status and count it. Too many failures empty the queue.

    ``changed``: whether the run that has ended changed the server.
    """
    revision = trigger.revision + 1
    targets.save(tx, replace(target, status=status, status_reason=reason, changed=changed, revision=revision))
    tx.notify(trigger_topic(trigger.id))
    before, after = _COUNTED[TargetStatus(target.status)], _COUNTED[status]
    counts: Mapping[str, Any] = {
        before: getattr(trigger, before) - 1,
        after: getattr(trigger, after) + 1,
        "changed": trigger.changed + (changed is True) - (target.changed is True),
        "unchanged": trigger.unchanged + (changed is False) - (target.changed is False),
        "revision": revision,
    }
    counted = replace(trigger, **counts)
    share = 100 * counted.failed / counted.total
    if not counted.queued or counted.options.stopped or share <= counted.options.max_fail_percentage:
        return counted
    reason = f"{counted.failed} of {counted.total} failed, more than {counted.options.max_fail_percentage:g} %"
    stopped = replace(counted, options=replace(counted.options, stopped=Stopped.FAILURES), status_reason=reason)
    return _without_queue(tx, stopped, f"Not begun: {reason}")


def _without_queue(tx: Tx, trigger: Trigger, reason: str) -> Trigger:
    if not trigger.queued:
        return trigger
    revision = trigger.revision + 1
    dropped = targets.drop_queue(tx, trigger.id, reason, revision)
    return replace(trigger, queued=trigger.queued - dropped, cancelled=trigger.cancelled + dropped, revision=revision)


def _finish(tx: Tx, trigger: Trigger) -> Trigger:
    status, options = TriggerStatus.COMPLETE, trigger.options
    if options.stopped is Stopped.CANCELLED:
        status, reason = TriggerStatus.CANCELLED, f"Cancelled by {options.stopped_by}"
    elif trigger.failed:
        status, reason = TriggerStatus.FAILED, f"{trigger.failed} of {trigger.total} failed"
        if options.stopped is Stopped.FAILURES:
            reason += f", more than {options.max_fail_percentage:g} %: {trigger.cancelled} were not run"
    elif trigger.cancelled:
        status, reason = TriggerStatus.CANCELLED, f"{trigger.cancelled} of {trigger.total} were cancelled"
    else:
        reason = f"All {trigger.total} succeeded" if trigger.total > 1 else "It succeeded"
        if trigger.changed or trigger.unchanged:
            verb = "would change" if options.mode is Mode.PREVIEW else "changed"
            reason += f": {trigger.changed} {verb}, {trigger.unchanged} unchanged"
    ended = replace(trigger, status=status, status_reason=reason, ended_at=tx.now)
    tx.after_commit(partial(_log_end, ended))
    return ended


def _log_end(trigger: Trigger) -> None:
    write = _log.warning if trigger.status == TriggerStatus.FAILED else _log.info
    write(
        "trigger.ended",
        trigger_id=trigger.id,
        schedule_id=trigger.schedule_id,
        project_id=trigger.project_id,
        status=str(trigger.status),
        total=trigger.total,
        failed=trigger.failed,
        cancelled=trigger.cancelled,
    )
