"""Queries for the earlier runs of deployments. The current run is in the row of its deployment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stoker.model.deployment import Deployment, Run
from stoker.store.query import change
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: The number of runs of one deployment that are kept, with the current one.
KEPT = 100

_RUNS = Repository(Run, "runs", key=("deployment_id", "config_id"))
_list_earlier: Callable[[Tx, str], list[Run]] = _RUNS.lister("deployment_id = :deployment_id ORDER BY number DESC")
_FORGET = sql("DELETE FROM runs WHERE deployment_id = :id")
_OLD = "SELECT config_id FROM runs WHERE deployment_id = :id AND number <= :last"
_FORGET_OLD_LOGS = sql(f"DELETE FROM logs WHERE deployment_id = :id AND config_id IN ({_OLD})")
_FORGET_OLD_RUNS = sql("DELETE FROM runs WHERE deployment_id = :id AND number <= :last")
_ENDED = "SELECT deployment_id, config_id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :most"
_PURGE_LOGS, _PURGE = (
    change(f"DELETE FROM {table} WHERE (deployment_id, config_id) IN ({_ENDED})") for table in ("logs", "runs")
)


def add(tx: Tx, ended: Run) -> None:
    """Insert a run that another one follows. Delete the oldest runs of its deployment beyond ``KEPT``."""
    _RUNS.add(tx, ended, later=True)
    if ended.number >= KEPT:
        old = {"id": ended.deployment_id, "last": ended.number + 1 - KEPT}
        tx.put(_FORGET_OLD_LOGS, old)
        tx.put(_FORGET_OLD_RUNS, old)


def list_all(tx: Tx, deployment: Deployment) -> list[Run]:
    """Return the deployment's runs, newest first."""
    return [deployment.run, *_list_earlier(tx, deployment.id)]


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete at most ``most`` runs that ended before ``before``, with their output; return their number."""
    _PURGE_LOGS(tx, before, most)
    return _PURGE(tx, before, most)


def forget(tx: Tx, deployment_id: str) -> None:
    """Delete the earlier runs of a deployment."""
    tx.put(_FORGET, {"id": deployment_id})
