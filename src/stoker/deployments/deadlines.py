"""Deadlines of runs: a job fails a run whose result does not arrive in time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from stoker.deployments.derive import TIMEOUT
from stoker.model.deployment import Deployment
from stoker.store import configs
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that fails a run when its deadline passes.
DEADLINE = "deployment.deadline"
#: Time after the agent's own timeout. The agent stops the hook itself; the server fails the run only if no result
#: arrives.
GRACE = timedelta(seconds=15)
#: Seconds. A longer timeout would exceed the range of dates.
_LONGEST = 2**31


def seconds_of(inputs: Iterable[Mapping[str, Any]]) -> float | None:
    """
    Return the timeout of a run in seconds, or None if the run has no limit.

    ``inputs`` are those of the derived config. An author may declare an input of the same name, so the last entry
    counts: Stoker appends its own inputs. A value that is not a positive number of seconds is ignored.
    """
    values: list[Any] = [entry.get("value") for entry in inputs if entry["name"] == TIMEOUT]
    if not values or isinstance(values[-1], bool):
        return None
    try:
        seconds = float(values[-1])
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and 0 < seconds < _LONGEST else None


def limit_of(tx: Tx, deployment: Deployment) -> float | None:
    """Return the timeout of the deployment's current run in seconds, or None."""
    config = configs.find(tx, deployment.config_id)
    return seconds_of(config.inputs) if config else None


def set_deadline(tx: Tx, work: Work, deployment: Deployment, seconds: float) -> None:
    """
    Set the deadline of the deployment's current run to ``seconds`` from now.

    A run that waits for a maintenance window gets its deadline when the window opens.
    """
    if deployment.held_by is None:
        set_run_deadline(tx, work, deployment.id, deployment.config_id, seconds)


def set_run_deadline(tx: Tx, work: Work, deployment_id: str, config_id: str, seconds: float) -> None:
    """Set the deadline of the run with the derived config ``config_id`` to ``seconds`` from now."""
    args = {"deployment_id": deployment_id, "config_id": config_id}
    work.defer(tx, DEADLINE, config_id, args, at=tx.now + timedelta(seconds=seconds) + GRACE)


def cancel_deadline(tx: Tx, work: Work, deployment: Deployment) -> None:
    """Cancel the deadline of the deployment's current run, because it has ended or its result is no longer awaited."""
    work.cancel(tx, DEADLINE, deployment.config_id)
