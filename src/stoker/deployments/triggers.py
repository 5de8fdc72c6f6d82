"""
The life of a trigger: as many of its deployments at a time as may be, until all have ended.

Whoever changes a trigger or ends a deployment of one holds the trigger first. A trigger counts its targets, so that the
end of one costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stoker.deployments import alone, deadlines, stopping
from stoker.deployments.alone import Using, Wanted
from stoker.model.deployment import CANCELLED, Deployment
from stoker.model.errors import Conflict, EntityNotFound, StokerError
from stoker.model.status import Status
from stoker.model.trigger import Content, Stopped, Target, TargetStatus, Trigger, TriggerStatus
from stoker.store import deployments, servers, targets, triggers
from stoker.store.bell import trigger_topic
from stoker.store.tx import Tx
from stoker.transports.choosing import AUTO
from stoker.work import defer_once

#: Kind of the job that goes on with a trigger whose share of a transaction was used up.
GO_ON = "trigger.go_on"
#: Deployments begun or stopped in one transaction.
SHARE = 200

#: What a target's status is counted as.
_COUNTED = {
    TargetStatus.QUEUED: "queued",
    TargetStatus.IN_PROGRESS: "running",
    TargetStatus.COMPLETE: "complete",
    TargetStatus.FAILED: "failed",
    TargetStatus.CANCELLED: "cancelled",
}


def begin(tx: Tx, using: Using, trigger: Trigger, content: Content, on: Sequence[Target]) -> Trigger:
    triggers.add(tx, trigger, content, on)
    return go_on(tx, using, trigger)


def go_on(tx: Tx, using: Using, trigger: Trigger) -> Trigger:
    """Do what can be done now: begin those whose turn it is, or stop those that run, and end it when none is left."""
    if trigger.status != TriggerStatus.IN_PROGRESS:
        return trigger
    if trigger.options.stopped is Stopped.CANCELLED:
        trigger = _stop_some(tx, using, trigger)
    else:
        trigger = _begin_some(tx, using, trigger)
    if not trigger.queued and not trigger.running:
        trigger = _ended(tx, trigger)
    triggers.save(tx, trigger)
    return trigger


def ended(tx: Tx, using: Using, deployment: Deployment, *, cancelled: bool = False) -> None:
    """
    A deployment of a trigger has ended, which the caller holds: count it, and go on. ``cancelled``: it was told to
    stop before it failed.
    """
    trigger, target = _of(tx, deployment)
    if trigger is None or target is None or target.status != TargetStatus.IN_PROGRESS:
        return
    status = TargetStatus.COMPLETE
    if deployment.status != Status.COMPLETE:
        status = TargetStatus.CANCELLED if cancelled or deployment.withheld == CANCELLED else TargetStatus.FAILED
    go_on(tx, using, _counted(tx, trigger, target, status, deployment.status_reason or ""))


def again(tx: Tx, using: Using, deployment: Deployment) -> None:
    """A deployment that had ended runs again, and its trigger with it."""
    trigger, target = _of(tx, deployment)
    if trigger is None or target is None or target.status == TargetStatus.IN_PROGRESS:
        return
    options = replace(trigger.options, stopped=None, stopped_by=None, forced=False)
    if trigger.status == TriggerStatus.IN_PROGRESS:
        options = trigger.options
    reopened = replace(trigger, status=TriggerStatus.IN_PROGRESS, status_reason="", ended_at=None, options=options)
    reopened = _counted(tx, reopened, target, TargetStatus.IN_PROGRESS, "")
    triggers.save(tx, reopened)
    if deployment.status != Status.IN_PROGRESS:  # no signal is awaited
        ended(tx, using, deployment)


def removed(tx: Tx, using: Using, deployment: Deployment) -> None:
    """A deployment of a trigger is about to be deleted: one that was running counts as cancelled."""
    trigger, target = _of(tx, deployment)
    if trigger is None or target is None:
        return
    nameless = replace(target, deployment_id=None)
    if target.status == TargetStatus.IN_PROGRESS:
        go_on(tx, using, _counted(tx, trigger, nameless, TargetStatus.CANCELLED, "Its deployment was deleted"))
    else:
        targets.save(tx, nameless)


def cancel(tx: Tx, using: Using, trigger: Trigger, by: str, *, force: bool = False) -> Trigger:
    """
    Begin nothing more and stop what runs; ``trigger`` must be held. It ends when all have ended; with ``force`` agents
    that are being told are not waited for. Raises Conflict for one that has ended.
    """
    if trigger.status != TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) has ended: there is nothing to cancel.")
    options = replace(trigger.options, stopped=Stopped.CANCELLED, stopped_by=by, forced=force or trigger.options.forced)
    stopped = replace(trigger, options=options, status_reason=f"Cancelling: asked by {by}")
    return go_on(tx, using, _without_queue(tx, stopped, f"Cancelled by {by} before it was begun"))


def delete(tx: Tx, using: Using, trigger: Trigger) -> None:
    """With its deployments; ``trigger`` must be held. Raises Conflict while it is under way."""
    if trigger.status == TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) is under way: cancel it first.")
    delete_some(tx, using, trigger)


def delete_some(tx: Tx, using: Using, ended: Trigger, most: int | None = None) -> int:
    """
    With up to so many of its deployments; where those are all, the trigger itself. Returns how many; ``ended`` must be
    held.
    """
    found = [each for each in targets.of_trigger(tx, ended.id) if each.deployment_id]
    share = found[:most]
    for each in share:
        held = deployments.find(tx, each.deployment_id or "", hold=True)
        if held is not None:
            alone.withdraw(tx, using, held)
    if len(share) == len(found):
        triggers.delete(tx, ended.id)
    else:
        for each in share:
            targets.save(tx, replace(each, deployment_id=None))
    return len(share)


def _begin_some(tx: Tx, using: Using, trigger: Trigger) -> Trigger:
    """Up to the transaction's share; the rest has its turn in the next."""
    left, content = SHARE, None
    while trigger.queued and not trigger.options.stopped and (room := _room(trigger)):
        if not left:
            defer_once(using.work, tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
            break
        content = content or triggers.content(tx, trigger.id)
        turn = targets.queued(tx, trigger.id, min(room, left))
        assert turn, "a trigger counts its targets"
        left -= len(turn)
        for each in turn:
            if trigger.options.stopped:
                break
            trigger = _begin_one(tx, using, trigger, content, each)
    return trigger


def _room(trigger: Trigger) -> int:
    """How many more may run at the same time."""
    return max(0, (trigger.options.max_concurrent or trigger.total) - trigger.running)


def _begin_one(tx: Tx, using: Using, trigger: Trigger, content: Content, target: Target) -> Trigger:
    try:
        if servers.find(tx, target.server_id) is None:
            raise EntityNotFound(f"Server {target.server_name} was removed")
        made = alone.begin(
            tx,
            using,
            Wanted(
                content=content,
                action=trigger.action,
                name=target.name,
                input_values={**target.input_values, **trigger.input_values},
                signal_transport=trigger.options.signal_transport or AUTO,
                timeout=trigger.options.timeout,
                asked_by=trigger.asked_by,
                secret=trigger.options.secret,
            ),
            project_id=trigger.project_id,
            server_id=target.server_id,
            trigger_id=trigger.id,
        )
    except StokerError as error:  # what only this server is refused must not keep the others
        return _counted(tx, trigger, target, TargetStatus.FAILED, error.message)
    begun = replace(target, deployment_id=made.id)
    if made.status == Status.IN_PROGRESS:
        return _counted(tx, trigger, begun, TargetStatus.IN_PROGRESS, "")
    return _counted(tx, trigger, begun, TargetStatus.COMPLETE, made.status_reason or "")


def _stop_some(tx: Tx, using: Using, trigger: Trigger) -> Trigger:
    reason = f"Cancelled by {trigger.options.stopped_by}"
    found = targets.to_stop(tx, trigger.id, SHARE, again=trigger.options.forced)
    for each in found:
        held = deployments.find(tx, each.deployment_id or "", hold=True)
        if held is None:
            trigger = _counted(tx, trigger, each, TargetStatus.CANCELLED, reason)
            continue
        stop = stopping.give_up if trigger.options.forced else stopping.cancel
        stopped = stop(tx, held, reason)
        if stopped.status != Status.IN_PROGRESS:
            deadlines.call_off(tx, using.work, stopped)
            trigger = _counted(tx, trigger, each, TargetStatus.CANCELLED, stopped.status_reason or "")
    if len(found) == SHARE:
        defer_once(using.work, tx, GO_ON, trigger.id, {"trigger_id": trigger.id})
    return trigger


def _of(tx: Tx, deployment: Deployment) -> tuple[Trigger | None, Target | None]:
    trigger = triggers.find(tx, deployment.trigger_id, hold=True) if deployment.trigger_id else None
    return trigger, targets.of_deployment(tx, deployment.id) if trigger else None


def _counted(tx: Tx, trigger: Trigger, target: Target, status: TargetStatus, reason: str) -> Trigger:
    """The target is in another state now. More failures than may be end the queue."""
    targets.save(tx, replace(target, status=status, status_reason=reason))
    tx.ring(trigger_topic(trigger.id))
    before, after = _COUNTED[TargetStatus(target.status)], _COUNTED[status]
    counts: Mapping[str, Any] = {before: getattr(trigger, before) - 1, after: getattr(trigger, after) + 1}
    counted = replace(trigger, **counts)
    share = 100 * counted.failed / counted.total
    if not counted.queued or counted.options.stopped or share <= counted.options.max_fail_percentage:
        return counted
    reason = f"{counted.failed} of {counted.total} failed, more than {counted.options.max_fail_percentage:g} %"
    stopped = replace(counted, options=replace(counted.options, stopped=Stopped.FAILURES), status_reason=reason)
    return _without_queue(tx, stopped, f"Not begun: {reason}")


def _without_queue(tx: Tx, trigger: Trigger, reason: str) -> Trigger:
    dropped = targets.drop_queue(tx, trigger.id, reason) if trigger.queued else 0
    return replace(trigger, queued=trigger.queued - dropped, cancelled=trigger.cancelled + dropped)


def _ended(tx: Tx, trigger: Trigger) -> Trigger:
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
    return replace(trigger, status=status, status_reason=reason, ended_at=tx.now)
