"""Queries for the runs in progress on a server, and for those that its maintenance windows hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stoker.store import rows
from stoker.store.deployments import MAY_HAVE_BEGUN, forget, polled_since
from stoker.store.query import exists
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: Conditions for runs that were not sent to the agent yet, of the server's own project or admitted. A run that is being
#: sent may be one of them.
_UNSENT = (
    "server_id = :server AND held_by IS NULL AND status = 'IN_PROGRESS' AND (project_id = :owner OR admitted)"
    " AND (mode IS NULL OR mode != 'preview') AND state = 'QUEUED' AND sent_at IS NULL"
)
#: Return whether a server of the project ``owner`` has runs that were not sent to its agent yet.
has_untold: Callable[[Tx, str, str], bool] = exists(f"SELECT id FROM deployments WHERE {_UNSENT} LIMIT 1")
_HELD_BACK = "server_id = :server AND held_by = 'WINDOW' AND (status IS NULL OR status != 'FAILED')"
#: Only deployments in progress get a new reason; the others keep their own.
_NEW_REASON = "status_reason = CASE WHEN status = 'IN_PROGRESS' THEN :reason ELSE status_reason END"
#: For each server, since when the oldest run of a tree of stacks has waited for the maintenance window.
_WAITING = sql(
    "SELECT deployments.server_id, min(deployments.queued_at) FROM deployments"
    " JOIN stacks ON stacks.id = deployments.stack_id"
    " WHERE stacks.root_id = :root AND deployments.held_by = 'WINDOW' AND deployments.status = 'IN_PROGRESS'"
    " GROUP BY deployments.server_id"
)
_CHANGED = "RETURNING id, config_id, status, signal_transport, mode"
_UPDATE_REASONS = sql(f"UPDATE deployments SET {_NEW_REASON} WHERE {_HELD_BACK} {_CHANGED}")
_HOLD_BACK = sql(
    "UPDATE deployments SET held_by = 'WINDOW', status_reason = :reason, state = 'PENDING_WINDOW'"
    f" WHERE {_UNSENT} AND NOT {MAY_HAVE_BEGUN} {_CHANGED}"
)
_RELEASE = sql(
    f"UPDATE deployments SET held_by = NULL, {_NEW_REASON},"
    " state = CASE WHEN state = 'PENDING_WINDOW' THEN 'QUEUED' ELSE state END"
    f" WHERE {_HELD_BACK} {_CHANGED}"
)
_OF_SERVER = (
    "SELECT id, config_id, stack_id, resource_id, trigger_id FROM deployments"
    " WHERE server_id = :server AND status = 'IN_PROGRESS'{} ORDER BY seq"
)
_UNDER_WAY = sql(_OF_SERVER.format(""))
_RECEIVED = sql(_OF_SERVER.format(" AND state IN ('DELIVERED', 'RUNNING') AND NOT cancelling"))


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A deployment in progress on a server."""

    id: str
    config_id: str
    #: A stack or a trigger needs to be notified of the end.
    belongs: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """A deployment that was held back or released."""

    deployment_id: str
    config_id: str
    #: Whether a report of its end is expected. False if a client manages the deployment's status itself.
    awaited: bool
    #: What the run does instead of applying its config: PREVIEW, UNDO or None.
    mode: str | None


def waiting_deployments(tx: Tx, root_id: str) -> list[tuple[str, datetime]]:
    """Return the servers whose maintenance windows this tree of stacks waits for, each with the start of the wait."""
    return [(server_id, rows.from_micros(since)) for server_id, since in tx.fetch_all(_WAITING, {"root": root_id})]


def under_way(tx: Tx, server_id: str, *, received: bool = False) -> list[UnderWay]:
    """
    Return the deployments in progress on the server, of all projects. ``received``: only those that the server's agent
    has received, and is not cancelling.
    """
    rows_found = tx.fetch_all(_RECEIVED if received else _UNDER_WAY, {"server": server_id})
    return [UnderWay(id, config_id, any(owner_ids)) for id, config_id, *owner_ids in rows_found]


def hold_back(tx: Tx, server_id: str, owner: str, reason: str) -> list[Changed]:
    """
    Remove runs that cannot have begun yet from the server's documents, until its maintenance window.

    ``reason`` becomes the reason of these deployments and of those that already wait. Returns all deployments that
    changed.
    """
    values = {"server": server_id, "owner": owner, "reason": reason, "polled_since": polled_since(tx)}
    removed = tx.fetch_all(_HOLD_BACK, values)
    ids = {id for id, *_ in removed}
    waiting = tx.fetch_all(_UPDATE_REASONS, {"server": server_id, "reason": reason})
    return [_changed(tx, row) for row in (*removed, *(row for row in waiting if row[0] not in ids))]


def release(tx: Tx, server_id: str, reason: str) -> list[Changed]:
    """Return the held deployments to the server's documents. ``reason`` becomes their reason."""
    return [_changed(tx, row) for row in tx.fetch_all(_RELEASE, {"server": server_id, "reason": reason})]


def _changed(tx: Tx, row: Any) -> Changed:
    id, config_id, status, signal_transport, mode = row
    forget(tx, id)
    return Changed(id, config_id, status == "IN_PROGRESS" and signal_transport is not None, mode)
