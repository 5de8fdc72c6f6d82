"""Queries for the earlier runs of deployments. The current run is in the row of its deployment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stoker.model.deployment import Deployment, Run
from stoker.store.query import change, put
from stoker.store.repository import Repository
from stoker.store.tx import Tx

#: The number of runs of one deployment that are kept, with the current one.
KEPT = 100

_RUNS = Repository(Run, "runs", key=("deployment_id", "config_id"))
_list_earlier: Callable[[Tx, str], list[Run]] = _RUNS.lister("deployment_id = :deployment_id ORDER BY number DESC")
#: Delete the earlier runs of a deployment.
forget: Callable[[Tx, str], None] = put("DELETE FROM runs WHERE deployment_id = :id")
_OLD = "FROM runs WHERE deployment_id = :id AND number <= :last"
_FORGET_OLD = [
    put(f"DELETE FROM logs WHERE deployment_id = :id AND config_id IN (SELECT config_id {_OLD})"),
    put(f"DELETE {_OLD}"),
]
_ENDED = "SELECT deployment_id, config_id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :most"
_PURGE_LOGS, _PURGE = (
    change(f"DELETE FROM {table} WHERE (deployment_id, config_id) IN ({_ENDED})") for table in ("logs", "runs")
)


def add(tx: Tx, ended: Run) -> None:
    """Insert a run that another one follows. Delete the oldest runs of its deployment beyond ``KEPT``."""
    _RUNS.add(tx, ended, later=True)
    if ended.number >= KEPT:
        for forget_old in _FORGET_OLD:
            forget_old(tx, ended.deployment_id, ended.number + 1 - KEPT)


def list_all(tx: Tx, deployment: Deployment) -> list[Run]:
    """Return the deployment's runs, newest first."""
    return [deployment.run, *_list_earlier(tx, deployment.id)]


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete at most ``most`` runs that ended before ``before``, with their output; return their number."""
    _PURGE_LOGS(tx, before, most)
    return _PURGE(tx, before, most)
