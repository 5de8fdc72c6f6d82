"""
Deadlines of runs: a job fails a run whose result does not arrive in time.

The time of a run begins with its start, which agents report that are connected to Stoker. Other agents report no start,
so the time of their runs begins with the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from stoker.deployments.derive import TIMEOUT
from stoker.model.deployment import Deployment
from stoker.store import configs, servers
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that fails a run when its deadline passes.
DEADLINE = "deployment.deadline"
#: Time after the agent's own timeout. The agent stops the hook itself; the server fails the run only if no result
#: arrives.
GRACE = timedelta(seconds=15)
#: The transport of agents that report the start of a run.
_REPORTS_START = "STOKER_SIGNAL"
#: Entry of the job's arguments: the timeout includes the time for which the run waits for its agent.
LIMITS_QUEUE = "limits_queue"
#: Seconds. A longer timeout would exceed the range of dates.
_LONGEST = 2**31


def seconds_of(inputs: Iterable[Mapping[str, Any]]) -> float | None:
    """
    Return the timeout of a run with these inputs in seconds, or None. Stoker appends its own inputs to the author's, so
    the last entry counts. A value that is no positive number of seconds is ignored.
    """
    values: list[Any] = [entry.get("value") for entry in inputs if entry["name"] == TIMEOUT]
    return read_seconds(values[-1]) if values else None


def read_seconds(value: Any) -> float | None:
    """Return a limit in seconds, a number or its text; None for any other value."""
    try:
        seconds = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < _LONGEST else None


def limit_of(tx: Tx, deployment: Deployment) -> float | None:
    """Return the timeout of the deployment's current run in seconds, or None."""
    config = configs.find(tx, deployment.config_id)
    return seconds_of(config.inputs) if config else None


def set_deadline(
    tx: Tx, work: Work, deployment_id: str, config_id: str, seconds: float, *, limits_queue: bool = False
) -> None:
    """Set the deadline of a run to ``seconds`` from now. ``limits_queue``: they include the wait for the agent."""
    args = {"deployment_id": deployment_id, "config_id": config_id, LIMITS_QUEUE: limits_queue}
    work.defer(tx, DEADLINE, config_id, args, at=tx.now + timedelta(seconds=seconds) + GRACE)


def postpone_deadline(tx: Tx, work: Work, deployment: Deployment, args: Mapping[str, Any]) -> bool:
    """
    Postpone the deadline (``args``: the job's) of a run that its agent has not started, or later than at the request.
    Returns False if the time of the run has passed.
    """
    server = servers.find(tx, deployment.server_id)
    reports_start = server is not None and server.has_channel and deployment.signal_transport == _REPORTS_START
    seconds = limit_of(tx, deployment)
    if seconds is None or args.get(LIMITS_QUEUE) or not reports_start:
        return False
    due = (deployment.started_at or tx.now) + timedelta(seconds=seconds) + GRACE
    if due <= tx.now:
        return False
    work.defer(tx, DEADLINE, deployment.config_id, args, at=due)
    return True


def cancel_deadline(tx: Tx, work: Work, config_id: str) -> None:
    """Cancel the deadline of a run, because it has ended or its result is no longer awaited."""
    work.cancel(tx, DEADLINE, config_id)
