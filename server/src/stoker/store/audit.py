"""Queries for the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from stoker.model.audit import Decision, Entry
from stoker.store import rows
from stoker.store.query import delete_oldest
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: The length of the columns with names.
_NAME_LENGTH = 255
#: Entries are only added and listed, never found by a key.
_DECISIONS = Repository(Decision, "audit", key=("project_id",))
#: An empty text matches every entry.
_MATCHING = f"""SELECT {_DECISIONS.columns}, seq, at FROM audit
    WHERE project_id = :project_id AND seq < :before
    AND (:stack = '' OR stack_name = :stack OR stack_id = :stack)
    AND (:actor = '' OR actor = :actor) AND (:outcome = '' OR outcome = :outcome)
    AND (:action = '' OR substr(action, 1, length(:action)) = :action) AND at >= :since AND at < :until
    AND (:object = '' OR :object IN (server_name, server_id, stack_name, stack_id, resource_name, config_name,
    deployment_id))"""
_NEWEST_FIRST = "ORDER BY seq DESC LIMIT :limit"
_LIST = sql(f"{_MATCHING} {_NEWEST_FIRST}")
_OF_SERVER = sql(f"{_MATCHING} AND server_name = :server {_NEWEST_FIRST}")
_OF_SERVER_ID = sql(f"{_MATCHING} AND server_id = :server {_NEWEST_FIRST}")
#: The outermost stack, with the path of resources in it: ``shop`` and ``databases/one`` for a member of a group.
_NAMES_OF = sql(
    """WITH RECURSIVE places (id, stack_id, path) AS (
        SELECT deployments.id, deployments.stack_id, CAST(resources.name AS text) FROM deployments
        JOIN resources ON resources.id = deployments.resource_id WHERE deployments.id @in(ids)
        UNION ALL SELECT places.id, stacks.parent_id, stacks.parent_resource || '/' || places.path FROM places
        JOIN stacks ON stacks.id = places.stack_id WHERE stacks.parent_id IS NOT NULL
    ), outermost (id, name, path) AS (
        SELECT places.id, stacks.name, places.path FROM places
        JOIN stacks ON stacks.id = places.stack_id AND stacks.parent_id IS NULL
    )
    SELECT deployments.id, servers.name, outermost.name, outermost.path, configs.name FROM deployments
    LEFT JOIN outermost ON outermost.id = deployments.id
    LEFT JOIN servers ON servers.id = deployments.server_id
    LEFT JOIN configs ON configs.id = deployments.config_id
    WHERE deployments.id @in(ids)"""
)
purge: Callable[[Tx, datetime, int], int] = delete_oldest("audit")
_LAST = 2**63 - 1
_NAMES = ("actor", "action", "server_name", "stack_name", "resource_name", "config_name")


def add(tx: Tx, decision: Decision) -> None:
    """Append a decision to the audit log, with the next other statement of the transaction (``Tx.put``)."""
    # Users' names and machines' host names are parts of longer phrases, which a column of names may not hold.
    cut: dict[str, Any] = {
        name: f"{text[: _NAME_LENGTH - 1]}…"
        for name in _NAMES
        if (text := getattr(decision, name)) and len(text) > _NAME_LENGTH
    }
    _DECISIONS.add(tx, decision, later=True, at=rows.to_micros(tx.now), **cut)


def list_all(
    tx: Tx,
    project_id: str,
    *,
    server: str = "",
    stack: str = "",
    actor: str = "",
    outcome: str = "",
    action: str = "",
    about: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 1000,
    before: int | None = None,
) -> list[Entry]:
    """
    Return at most ``limit`` entries of a project, newest first.

    ``server``, ``stack`` and ``about``, which is any object, are names or ids, also of deleted objects. ``action`` is
    the beginning of an action. Empty texts mean any. ``before`` is a ``seq``: only older entries are returned.
    """
    values: dict[str, Any] = {"project_id": project_id, "stack": stack, "actor": actor, "outcome": outcome}
    values |= {"action": action, "object": about}
    values |= {"since": rows.to_micros(since) if since else 0, "until": rows.to_micros(until) if until else _LAST}
    values |= {"limit": limit, "before": _LAST if before is None else before, **({"server": server} if server else {})}
    result = tx.fetch_all(_OF_SERVER if server else _LIST, values)
    if server and not result:
        result = tx.fetch_all(_OF_SERVER_ID, values)
    return [Entry(row[-2], rows.from_micros(row[-1]), _DECISIONS.decode(row, tx.secrets)) for row in result]


def names_of(tx: Tx, deployment_id: str) -> Mapping[str, str | None]:
    """Return the names of a deployment's server, stack, resource and config, as an entry has them."""
    return names_of_all(tx, [deployment_id]).get(deployment_id, {})


def names_of_all(tx: Tx, deployment_ids: Sequence[str]) -> Mapping[str, Mapping[str, str | None]]:
    """Return ``names_of`` by the ids of deployments."""
    return {
        id: dict(zip(_NAMES[2:], names, strict=True))
        for id, *names in tx.fetch_all(_NAMES_OF, {"ids": rows.dump(list(deployment_ids))})
    }
