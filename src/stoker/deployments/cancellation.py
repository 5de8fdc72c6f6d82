"""Cancellation of runs before they end, and the notice to their agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.deployments import runs, service
from stoker.deployments.signals import REASON
from stoker.model.deployment import CANCELLED, Deployment, RunState
from stoker.model.status import Status
from stoker.store import deployments
from stoker.store import runs as stored
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: Status reason of a deployment whose agent has to stop the run.
CANCELLING = "Cancelling"


def cancel(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """
    Cancel the current run of a deployment. Return the changed deployment.

    If Stoker's own agent may have started the run, the deployment is IN_PROGRESS until the agent reports the end of the
    run. Any other run fails immediately. The reason states whether its agent may still execute the run.
    """
    if deployment.status != Status.IN_PROGRESS or deployment.cancelling:
        return deployment
    run = stored.find(tx, deployment.id, deployment.config_id)
    if run is None or run.sent_at is None:
        return _stop(tx, deployment, f"{reason} before it was delivered")
    if not runs.is_own(run):
        return _stop(tx, deployment, f"{reason}; its agent cannot be told, so what it has begun may go on")
    stored.set_state(tx, deployment.id, deployment.config_id, RunState.CANCELLING)
    return service.save(tx, replace(deployment, cancelling=True, status_reason=CANCELLING, updated_at=tx.now))


def force_fail(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run immediately, without waiting for its agent. The agent is instructed to stop the run."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    run = stored.find(tx, deployment.id, deployment.config_id)
    telling = run is not None and run.sent_at is not None and runs.is_own(run)
    return _stop(tx, deployment, reason, cancelling=telling)


def _stop(tx: Tx, deployment: Deployment, reason: str, *, cancelling: bool = False) -> Deployment:
    stopped = replace(deployment, held_by=CANCELLED, cancelling=cancelling)
    return service.save(tx, replace(stopped, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def record_stopped(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """Record the result that the agent reports of a cancelled run. The notice to stop leaves the server's document."""
    changed = replace(deployment, cancelling=False)
    deployments.save(tx, changed)
    ended = replace(changed, output_values=values, status_reason=_reason(values) or changed.status_reason)
    runs.record_end(tx, ended, values)
    tx.bump_document(changed.server_id)
    tx.notify(deployment_topic(changed.id))
    return changed


def _reason(values: Mapping[str, Any]) -> str | None:
    return str(values[REASON]).replace("\0", "") if values.get(REASON) else None
