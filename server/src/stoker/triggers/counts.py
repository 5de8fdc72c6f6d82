"""
The counts of a trigger: how many targets have which status, and what follows from the numbers.

A trigger counts its targets by status, so that the end of one costs the same for any number of targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.model.deployment import CANCELLED, Deployment
from stoker.model.status import Status
from stoker.model.trigger import Mode, Stopped, Target, TargetStatus, Trigger, TriggerStatus
from stoker.store import targets
from stoker.store.notifier import trigger_topic
from stoker.store.tx import Tx
from stoker.triggers.output_groups import digest_output

_log = structlog.get_logger("stoker.triggers")

#: The counter for each status of a target.
_COUNTED = {
    TargetStatus.QUEUED: "queued",
    TargetStatus.IN_PROGRESS: "running",
    TargetStatus.COMPLETE: "complete",
    TargetStatus.FAILED: "failed",
    TargetStatus.CANCELLED: "cancelled",
}


def count_end(tx: Tx, trigger: Trigger, target: Target, deployment: Deployment, cancelled: bool) -> Trigger:
    """Count a target whose run has ended. ``cancelled``: its agent was instructed to stop the run."""
    status, reason = TargetStatus.COMPLETE, deployment.status_reason or ""
    if deployment.status != Status.COMPLETE:
        status = TargetStatus.CANCELLED if cancelled or deployment.held_by == CANCELLED else TargetStatus.FAILED
    if status is TargetStatus.CANCELLED and trigger.options.stopped_by is not None:
        reason = f"Cancelled by {trigger.options.stopped_by}"  # how the script ended is the deployment's own reason
    digest = digest_output(tx, target, deployment)
    result = replace(target, changed=deployment.changed, exit_code=deployment.status_code, digest=digest)
    return count_target(tx, trigger, target, status, reason, result=result)


def count_target(
    tx: Tx, trigger: Trigger, target: Target, status: TargetStatus, reason: str, *, result: Target | None = None
) -> Trigger:
    """Store and count the target's new status. ``result``: with that of its run. Many failures empty the queue."""
    revision = trigger.revision + 1
    result = result or replace(target, changed=None, exit_code=None, digest=None)
    changed = result.changed
    targets.save(tx, replace(result, status=status, status_reason=reason, revision=revision, updated_at=tx.now))
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
    return drop_queue(tx, stopped, f"Not begun: {reason}")


def drop_queue(tx: Tx, trigger: Trigger, reason: str) -> Trigger:
    """Cancel all queued targets."""
    if not trigger.queued:
        return trigger
    revision = trigger.revision + 1
    dropped = targets.drop_queue(tx, trigger.id, reason, revision)
    return replace(trigger, queued=trigger.queued - dropped, cancelled=trigger.cancelled + dropped, revision=revision)


def finish(tx: Tx, trigger: Trigger) -> Trigger:
    """Return the ended trigger with its final status, and log the end after the commit."""
    status, options = TriggerStatus.COMPLETE, trigger.options
    if options.stopped is Stopped.CANCELLED:
        status, reason = TriggerStatus.CANCELLED, f"Cancelled by {options.stopped_by}"
    elif trigger.failed:
        status, reason = TriggerStatus.FAILED, f"{trigger.failed} of {trigger.total} failed"
        if options.stopped is Stopped.FAILURES:
            reason += f", more than {options.max_fail_percentage:g} %: {trigger.cancelled} were not run"
        elif options.stopped is Stopped.CANARY:
            reason += f" on the canaries: {trigger.cancelled} were not run"
    elif trigger.cancelled:
        status, reason = TriggerStatus.CANCELLED, f"{trigger.cancelled} of {trigger.total} were cancelled"
    else:
        reason = f"All {trigger.total} succeeded" if trigger.total > 1 else "Succeeded"
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
