"""Ending runs before their time, and telling agents to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.deployments import manage, runs
from stoker.deployments.settle import REASON
from stoker.model.deployment import CANCELLED, Deployment, RunState
from stoker.model.status import Status
from stoker.store import deployments
from stoker.store import runs as stored
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

#: What a deployment says of itself while its agent is told to stop the run.
CANCELLING = "Cancelling"


def cancel(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """
    End a run before its time. One that Stoker's own agent may have begun is IN_PROGRESS until the agent has said what
    became of it; any other is over at once, in words that say how sure that is.
    """
    if deployment.status != Status.IN_PROGRESS or deployment.cancelling:
        return deployment
    run = stored.find(tx, deployment.id, deployment.config_id)
    if run is None or run.delivered_at is None:
        return _stop(tx, deployment, f"{reason} before it was delivered")
    if not runs.is_own(run):
        return _stop(tx, deployment, f"{reason}; its agent cannot be told, so what it has begun may go on")
    stored.set_state(tx, deployment.id, deployment.config_id, RunState.CANCELLING)
    return manage.save(tx, replace(deployment, cancelling=True, status_reason=CANCELLING, updated_at=tx.now))


def give_up(tx: Tx, deployment: Deployment, reason: str) -> Deployment:
    """It has failed now, whatever its agent does; the agent is told to stop all the same."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    run = stored.find(tx, deployment.id, deployment.config_id)
    telling = run is not None and run.delivered_at is not None and runs.is_own(run)
    return _stop(tx, deployment, reason, cancelling=telling)


def _stop(tx: Tx, deployment: Deployment, reason: str, *, cancelling: bool = False) -> Deployment:
    stopped = replace(deployment, withheld=CANCELLED, cancelling=cancelling)
    return manage.save(tx, replace(stopped, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def stopped(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """The agent says what became of a run that had been given up: it need not be told any more."""
    changed = replace(deployment, cancelling=False)
    deployments.save(tx, changed)
    ended = replace(changed, output_values=values, status_reason=_said(values) or changed.status_reason)
    runs.ended(tx, ended, values)
    tx.touch(changed.server_id)
    tx.ring(deployment_topic(changed.id))
    return changed


def _said(values: Mapping[str, Any]) -> str | None:
    return str(values[REASON]).replace("\0", "") if values.get(REASON) else None
