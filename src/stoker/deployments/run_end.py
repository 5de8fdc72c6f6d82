"""
Ends of runs: by a report, a cancellation, a deadline or a client.

The functions do not tell the deployment's owner: ``service`` does, unless the owner itself ends the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from stoker.deployments import log_storage, runs
from stoker.deployments.deadlines import cancel_deadline
from stoker.deployments.signals import REASON, resolve_signal
from stoker.model.deployment import CANCELLED, Deployment, Run, RunState, Signal
from stoker.model.status import Status
from stoker.store import configs, deployments, servers
from stoker.store import runs as stored
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx
from stoker.work import Work

#: Status reason of a deployment whose agent has to stop the run.
CANCELLING = "Cancelling"
#: An agent that was seen so recently may hold a poll, which lasts a minute at most.
_POLLING = timedelta(minutes=2)


def finish_run(tx: Tx, work: Work, ended: Deployment, values: Mapping[str, Any] = MappingProxyType({})) -> Deployment:
    """
    Store a deployment whose current run has ended, and return it. Every run that does not end at its start ends here.

    ``values``: those of the report that ended the run, if there is one.
    """
    deployments.save(tx, ended)
    runs.record_end(tx, ended, values)
    cancel_deadline(tx, work, ended)
    _notify(tx, ended)
    return ended


def apply_signal(tx: Tx, work: Work, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """
    Apply the values of a signal, which may report only progress. Return the changed deployment.

    A deployment that has ended is returned unchanged, unless its agent reports that it has stopped the run. At most
    ``log_bytes`` of each stream are kept.
    """
    is_progress = runs.is_progress(values)
    if deployment.status != Status.IN_PROGRESS:
        if deployment.cancelling and not is_progress:
            log_storage.store_report(tx, deployment, values, log_bytes)
            return record_stopped(tx, deployment, values)
        return deployment
    if is_progress:
        return runs.record_progress(tx, deployment, runs.progress_of(tx, values))
    log_storage.store_report(tx, deployment, values, log_bytes)
    config = configs.find(tx, deployment.config_id)
    resolved = resolve_signal(deployment, config.outputs if config else (), Signal(values))
    return finish_run(tx, work, replace(resolved, cancelling=False, updated_at=tx.now), values)


def fail(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run without further reports. The run leaves the server's document."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return finish_run(tx, work, replace(deployment, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def cancel(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """
    Cancel the current run of a deployment. Return the changed deployment.

    If Stoker's own agent may have started the run, the deployment is IN_PROGRESS until the agent reports the end of the
    run. Any other run fails immediately. The reason states whether its agent may still execute the run.
    """
    if deployment.status != Status.IN_PROGRESS or deployment.cancelling:
        return deployment
    run = stored.find(tx, deployment.id, deployment.config_id)
    if not _may_have_begun(tx, run, deployment.server_id):
        was_sent = run is not None and run.sent_at is not None
        outcome = "; its agent cannot be reached, so a run that it has begun may continue"
        return _stop(tx, work, deployment, f"{reason}{outcome if was_sent else ' before it was delivered'}")
    stored.set_state(tx, deployment.id, deployment.config_id, RunState.CANCELLING)
    return save(tx, replace(deployment, cancelling=True, status_reason=CANCELLING, updated_at=tx.now))


def force_fail(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run immediately, without waiting for its agent. The agent is instructed to stop the run."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    run = stored.find(tx, deployment.id, deployment.config_id)
    return _stop(tx, work, deployment, reason, cancelling=_may_have_begun(tx, run, deployment.server_id))


def _may_have_begun(tx: Tx, run: Run | None, server_id: str) -> bool:
    """
    Return whether Stoker's own agent may have begun the run.

    A delivery is recorded a moment after the document was sent. Therefore an agent that polls may have any run that
    waits for it.
    """
    if run is None:
        return False
    if run.sent_at is not None:
        return runs.is_own(run)
    if run.state == RunState.PENDING_WINDOW:
        return False
    server = servers.find(tx, server_id)
    if server is None or server.last_seen is None:
        return False
    return server.has_own_agent and tx.now - server.last_seen < _POLLING


def record_stopped(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """Record the result that the agent reports of a cancelled run. The notice to stop leaves the server's document."""
    changed = replace(deployment, cancelling=False)
    reason = str(values[REASON]).replace("\0", "") if values.get(REASON) else changed.status_reason
    runs.record_end(tx, replace(changed, output_values=values, status_reason=reason), values)
    return save(tx, changed)


def save(tx: Tx, changed: Deployment) -> Deployment:
    """Store a deployment whose run continues, or has ended before. Return the deployment."""
    deployments.save(tx, changed)
    _notify(tx, changed)
    return changed


def _stop(tx: Tx, work: Work, deployment: Deployment, reason: str, *, cancelling: bool = False) -> Deployment:
    return fail(tx, work, replace(deployment, held_by=CANCELLED, cancelling=cancelling), reason)


def _notify(tx: Tx, deployment: Deployment) -> None:
    tx.bump_document(deployment.server_id)
    tx.notify(deployment_topic(deployment.id))
