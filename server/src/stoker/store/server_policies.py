"""Queries for policies of servers, and for the deployments that maintenance windows hold."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stoker.model.stack import Stack
from stoker.store import rows, stacks
from stoker.store.deployments import MAY_HAVE_BEGUN, forget, polled_since
from stoker.store.query import exists, scalar
from stoker.store.sql import Statement, sql
from stoker.store.tx import Tx

_COLUMNS = ", ".join(f"servers.{name}" for name in ("project_id", "policy", "name", "stack_id", "stands_for", "agent"))
_SERVER = sql(f"SELECT {_COLUMNS} FROM servers WHERE id = :id")
#: The lock does not block heartbeats, but it blocks changes and the deletion of the server.
_STAYING = sql(f"{_SERVER.text} @for_key_share")
_ALL = sql(f"SELECT {_COLUMNS}, servers.id FROM servers WHERE id @in(ids) ORDER BY id")
_STAYING_ALL = sql(f"{_ALL.text} @for_key_share")
#: The server is in a subquery, because PostgreSQL locks no row of an outer join.
_WITH_CONFIG = sql(
    f"SELECT configs.body, configs.project_id, configs.created_at, configs.name, {_COLUMNS} FROM configs"
    f" LEFT JOIN (SELECT {_COLUMNS} FROM servers WHERE servers.id = :id @for_key_share) AS servers ON true"
    " WHERE configs.id = :config"
)
#: Return the stack that contains the source of a trigger, or None.
stack_of_trigger: Callable[[Tx, str], str | None] = scalar("SELECT stack_id FROM triggers WHERE id = :id")
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
_CHANGED = "RETURNING id, config_id, status, signal_transport"
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
class Governed:
    """The columns of a server's row that policies use."""

    project_id: str
    #: As stored; None: the server has no policy of its own.
    policy: str | None
    name: str
    stack_id: str | None
    #: As stored: the resources that represent the server, resource id → id of the root stack.
    stands_for: str
    #: The agent on the server, as its resource declares it.
    agent: str | None

    @property
    def stood_for_by(self) -> frozenset[str]:
        """The ids of the root stacks with a resource that represents the server."""
        return frozenset(rows.load(self.stands_for).values())


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


def server(tx: Tx, id: str, *, staying: bool = False) -> Governed | None:
    """
    Return a server's row, or None. Every deployment asks this when it starts: one read by primary key.

    ``staying`` locks the row, so that the server and its policy do not change until the transaction ends.
    """
    row = tx.cache.get(("policy", id)) or tx.execute_fast(_STAYING if staying else _SERVER, {"id": id})
    return None if row is None or row[0] is None else Governed(*row)


def prime(tx: Tx, ids: Collection[str]) -> None:
    """
    Read the rows of several servers at once.

    A write transaction locks them, as ``server`` does with ``staying``; a read transaction reads their stacks, too.
    """
    loaded = tx.fetch_all(_ALL if tx.is_reading else _STAYING_ALL, {"ids": rows.dump(list(ids))})
    tx.cache |= {("policy", id): row for *row, id in loaded}
    if tx.is_reading:
        stacks.STACKS.prime(tx, {id for *row, _ in loaded if (id := Governed(*row).stack_id)})


def prime_with_config(tx: Tx, id: str, config_id: str) -> None:
    """Read and lock the row of a server, and read a config, at once. The server need not exist."""
    row = tx.execute_fast(_WITH_CONFIG, {"id": id, "config": config_id})
    if row is not None:
        tx.cache["configs", config_id], tx.cache["policy", id] = row[:4], row[4:]


def top(tx: Tx, stack_id: str) -> Stack | None:
    """Return the root stack of this stack's tree, or None if the stack does not exist."""
    stack = stacks.find(tx, stack_id)
    return stack if stack is None or stack.root_id == stack.id else stacks.find(tx, stack.root_id)


def waiting_deployments(tx: Tx, root_id: str) -> list[tuple[str, datetime]]:
    """Return the servers whose maintenance windows this tree of stacks waits for, each with the start of the wait."""
    return [(server_id, rows.from_micros(since)) for server_id, since in tx.fetch_all(_WAITING, {"root": root_id})]


def under_way(tx: Tx, server_id: str) -> list[UnderWay]:
    """Return the deployments in progress on the server, of all projects."""
    return _under_way(tx, _UNDER_WAY, server_id)


def list_received(tx: Tx, server_id: str) -> list[UnderWay]:
    """Return the deployments in progress that the server's agent has received, and is not cancelling."""
    return _under_way(tx, _RECEIVED, server_id)


def _under_way(tx: Tx, query: Statement, server_id: str) -> list[UnderWay]:
    rows_found = tx.fetch_all(query, {"server": server_id})
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
    id, config_id, status, signal_transport = row
    forget(tx, id)
    return Changed(id, config_id, status == "IN_PROGRESS" and signal_transport is not None)
