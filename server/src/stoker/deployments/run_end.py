"""
Ends of runs: by a report, a cancellation, a deadline or a client.

The functions do not tell the deployment's owner: ``service`` does, unless the owner itself ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from stoker.deployments import log_storage, runs
from stoker.deployments.deadlines import cancel_deadline
from stoker.deployments.signals import ALWAYS, CHANGES, read_code, resolve_signal
from stoker.model.deployment import CANCELLED, OWN_CHANNEL, Deployment, RunState
from stoker.model.status import Status
from stoker.store import configs, deployments
from stoker.store.notifier import deployment_topic, project_topic
from stoker.store.tx import Tx
from stoker.work import Work

#: Status reason of a deployment whose agent has to stop the run.
CANCELLING = "Cancelling"
#: Value of a result: duration of the run in seconds.
_DURATION = "deploy_run_seconds"
#: Seconds: a year. Longer durations are ignored.
_LONGEST = 365 * 24 * 3600


def finish_run(tx: Tx, work: Work, ended: Deployment, *, wakes: bool = True) -> Deployment:
    """
    Store a deployment whose run has ended, and return it. Every run that does not end at its start ends here. A later
    report does not change the time of the end. ``wakes``: as of ``Tx.bump_document``.
    """
    cancel_deadline(tx, work, ended.config_id)
    done = log_storage.end_output(tx, ended)
    if ended.is_of_client:
        tx.notify(project_topic(ended.project_id, "deployments"))
    return save(tx, replace(done, state=RunState.DONE, ended_at=ended.ended_at or tx.now), wakes=wakes)


def apply_signal(
    tx: Tx, work: Work, deployment: Deployment, values: Mapping[str, Any], log_bytes: int, *, wakes: bool = True
) -> Deployment:
    """
    Apply the values of a signal, maybe only progress, and ``log_bytes`` of each stream. Return the deployment,
    unchanged if it has ended, unless its agent reports that it has stopped the run. ``wakes`` False: the server's own
    agent sends the signal, and need not read the document that the end of the run changes.
    """
    is_progress = runs.is_progress(values)
    is_over = deployment.status != Status.IN_PROGRESS
    if is_over and (is_progress or not deployment.cancelling):
        reason = f"the run has ended: {deployment.status}"
        runs.log_rejection(tx, deployment.id, deployment.config_id, reason)
        return deployment
    if is_progress:
        return runs.read_progress(tx, deployment, values)
    outputs = configs.outputs(tx, deployment.config_id)
    reported = log_storage.store_report(tx, deployment, values, log_bytes)
    if is_over:
        return record_stopped(tx, reported, values)
    if CHANGES in values:
        # Redacted before texts are cut: the first half of a secret would no longer be found.
        values = {**values, CHANGES: tx.secrets.redact(values[CHANGES])}
    resolved = resolve_signal(reported, outputs, values)
    ended = replace(
        resolved,
        cancelling=False,
        updated_at=tx.now,
        started_at=resolved.started_at or _began(tx, resolved, values.get(_DURATION)),
    )
    return finish_run(tx, work, ended, wakes=wakes)


def _began(tx: Tx, deployment: Deployment, seconds: object) -> datetime | None:
    """Compute the start of a run from its reported duration: an agent sends no progress of a very short run."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _LONGEST:
        return None
    # The agent's clock may be wrong: a run never starts before its request.
    return max(tx.now - timedelta(seconds=seconds), deployment.queued_at or deployment.created_at)


def fail(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run without further reports. The run leaves the server's document."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return finish_run(tx, work, replace(deployment, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def cancel(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """
    Cancel the current run; return the deployment. It is IN_PROGRESS until Stoker's own agent, if it may have started
    the run, reports its end. Any other run fails at once, and the reason says whether it may continue.
    """
    if deployment.status != Status.IN_PROGRESS or deployment.cancelling:
        return deployment
    if not _can_be_stopped(tx, deployment):
        outcome = "; its agent cannot be reached, so a run that it has begun may continue"
        return _stop(tx, work, deployment, f"{reason}{outcome if deployment.sent_at else ' before it was delivered'}")
    changed = replace(deployment, cancelling=True, status_reason=CANCELLING, updated_at=tx.now)
    return save(tx, replace(changed, state=RunState.CANCELLING))


def force_fail(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run immediately, without waiting for its agent. The agent is instructed to stop the run."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return _stop(tx, work, deployment, reason, cancelling=_can_be_stopped(tx, deployment))


def _can_be_stopped(tx: Tx, deployment: Deployment) -> bool:
    """Return whether Stoker's own agent may have begun the run, so that it has to stop it."""
    is_reachable = deployment.sent_at is None or deployment.channel == OWN_CHANNEL
    return is_reachable and deployments.may_have_begun(tx, deployment.id)


def record_stopped(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """Record the result that the agent reports of a cancelled run. The notice to stop leaves the server's document."""
    outputs = {name: values[name] for name in ALWAYS if name in values}
    return save(tx, replace(deployment, cancelling=False, output_values=outputs, status_code=read_code(values)))


def save(
    tx: Tx,
    changed: Deployment,
    write: Callable[[Tx, Deployment], None] = deployments.save_progress,
    *,
    wakes: bool = True,
) -> Deployment:
    """
    Store a deployment and return it. ``write``: what writes more than progress and end of its run. ``wakes``: as of
    ``Tx.bump_document``.
    """
    write(tx, changed)
    tx.bump_document(changed.server_id, wakes=wakes)
    tx.notify(deployment_topic(changed.id))
    return changed


def _stop(tx: Tx, work: Work, deployment: Deployment, reason: str, *, cancelling: bool = False) -> Deployment:
    return fail(tx, work, replace(deployment, held_by=CANCELLED, cancelling=cancelling), reason)
