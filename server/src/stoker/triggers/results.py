"""
Results of a trigger: how many targets have which status, what follows from the numbers, and groups of equal output.

A trigger counts its targets by status, so that the end of one costs the same for any number of targets. A group has
runs whose exit codes are equal, and whose output differs only in the names and addresses of their servers, and in
times. Each target stores the digest of its output when its run ends.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Annotated, Any

import structlog
from msgspec import Meta, Struct
from msgspec.structs import replace

from stoker.deployments.runs import STREAMS
from stoker.model.deployment import CANCELLED, Deployment
from stoker.model.secrets import texts_of
from stoker.model.stack import Status
from stoker.model.trigger import Mode, Stopped, Target, TargetStatus, Trigger, TriggerStatus
from stoker.store import deployments, servers, targets
from stoker.store.notifier import trigger_topic
from stoker.store.tx import Tx

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
    if trigger.options.has_blocked and status not in (TargetStatus.QUEUED, TargetStatus.IN_PROGRESS):
        targets.unblock_following(tx, target)
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


SERVER, TIME = "<server>", "<time>"
#: Characters. A shorter name is part of many words.
_SHORTEST = 3
#: Characters of each stream that a group shows at most. The log of its run has all of them.
_MOST_TEXT = 16 * 1024
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\ [AP]M)?"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
#: Points in time, and measured durations. Every repetition is bounded, so that a search takes linear time. A date
#: without a time of day is rather a part of what the run reports than the time at which it ran.
_TIMES = re.compile(
    rf"""
    (?<![\w:])(?:
    \d{{4}}-\d\d-\d\d[T\ ]{_CLOCK}(?:\ ?Z|\ ?[+-]\d\d:?\d\d|\ UTC)?
    | (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\ )?(?:{_MONTH}\ {{1,2}}\d{{1,2}}|\d{{1,2}}\ {_MONTH})(?:\ \d{{4}})?
      \ {_CLOCK}(?:\ (?:[A-Z]{{3,5}}|[+-]\d{{4}}))?(?:\ \d{{4}})?
    | \d{{1,2}}:\d\d:\d\d(?:[.,]\d{{1,9}})?
    | (?:\d{{1,6}}m)?\d{{1,9}}[.,]\d{{1,9}}\ ?(?:s|ms|µs|us|secs?|seconds?)
    )(?![\w:])
    """,
    re.VERBOSE,
)


class OutputGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ended targets with equal exit codes and output, of which one represents the others."""

    count: int
    #: If it is None, the group has one status reason.
    exit_code: Annotated[str | None, Meta(description="null if the runs reported none, or never began")]
    digest: str | None
    status_reason: str
    deployment_id: Annotated[str | None, Meta(description="The deployment of the group's first target")]
    stdout: Annotated[str, Meta(description="With <server> for the server's own names, and <time> for times")]
    stderr: Annotated[str, Meta(description="As stdout")]
    is_cut: Annotated[bool, Meta(description="Whether the log of the deployment has more output")]
    servers: Annotated[list[str], Meta(description="The names of the servers, in the order of the targets")]


def group_outputs(tx: Tx, trigger_id: str, *, status: str | None, limit: int) -> tuple[list[OutputGroup], int]:
    """
    Return the ``limit`` largest groups of ended targets (of a ``status``), those of one size by exit code, and the
    number of all groups.
    """
    members: dict[tuple[str | None, ...], list[Target]] = {}
    for target in targets.list_ended(tx, trigger_id, status):
        reason = target.status_reason if target.digest is None else None
        members.setdefault((target.exit_code, target.digest, reason), []).append(target)
    ordered = sorted(members.values(), key=lambda group: (-len(group), _order_of_code(group[0].exit_code)))
    return [_describe(tx, group) for group in ordered[:limit]], len(ordered)


def digest_output(tx: Tx, target: Target, ended: Deployment) -> str | None:
    """Return the digest of the output of a run that has ended, or None if it has reported no exit code."""
    if ended.status_code is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for text in _normalize_streams(tx, target, ended):
        data = text.encode("utf-8", "replace")
        digest.update(b"%d:%b" % (len(data), data))
    return digest.hexdigest()


def normalize(text: str, own_names: Collection[str]) -> str:
    """Return the text with ``SERVER`` for a server's names, which are sorted by length, and ``TIME`` for times."""
    # Few outputs contain names, and compiling an expression takes longer than searching for them.
    if present := [re.escape(name) for name in own_names if name in text]:
        text = re.sub(rf"(?<!\w)(?:{'|'.join(present)})(?!\w)", SERVER, text)
    return _TIMES.sub(TIME, text)


def _normalize_streams(tx: Tx, target: Target, ended: Deployment) -> list[str]:
    """Return the normalized output of a target's run, stream by stream, with secrets redacted."""
    texts = [str(ended.output_values.get(name) or "") for name in STREAMS]
    if not any(texts):
        return texts
    own_names = _list_own_names(target, servers.load_facts(tx, target.server_id))
    return [normalize(tx.secrets.redact(text), own_names) for text in texts]


def _list_own_names(target: Target, facts: Mapping[str, object]) -> list[str]:
    """Return the names, ids and addresses of a target's server, longest first."""
    own = {target.server_id, target.server_name, target.deployment_id}
    own |= set(texts_of([facts.get(name) for name in ("hostname", "fqdn", "address", "networks")]))
    return sorted((text for text in own if text and len(text) >= _SHORTEST and not text.isdecimal()), key=len)[::-1]


def _order_of_code(code: str | None) -> tuple[bool, int, str]:
    """Sort exit codes as numbers, and None after them."""
    number = int(code) if code and code.isascii() and code.isdecimal() else 0
    return code is None, number, code or ""


def _describe(tx: Tx, group: list[Target]) -> OutputGroup:
    shown = group[0]
    deployment = deployments.find(tx, shown.deployment_id) if shown.deployment_id and shown.digest else None
    stdout, stderr = ("", "") if deployment is None else _normalize_streams(tx, shown, deployment)
    return OutputGroup(
        count=len(group),
        exit_code=shown.exit_code,
        digest=shown.digest,
        status_reason=shown.status_reason,
        deployment_id=shown.deployment_id,
        stdout=stdout[:_MOST_TEXT],
        stderr=stderr[:_MOST_TEXT],
        is_cut=max(len(stdout), len(stderr)) > _MOST_TEXT,
        servers=[target.server_name for target in group],
    )
