"""Queries for the targets of triggers."""

from __future__ import annotations

from collections.abc import Callable, Collection

from stoker.model.trigger import Target
from stoker.store import rows
from stoker.store.deployments import MAY_HAVE_BEGUN, polled_since
from stoker.store.query import Query, change, execute, put
from stoker.store.repository import Repository
from stoker.store.servers import FACTS
from stoker.store.sql import sql
from stoker.store.tx import Tx

_TARGETS = Repository(
    Target,
    "trigger_targets",
    key=("trigger_id", "position"),
    fixed=("server_id", "server_name", "name", "input_values", "resource_name", "blocked"),
)
_WIDTH, _SERVER, _DEPLOYMENT = (
    len(_TARGETS.codec.fields),
    *(_TARGETS.codec.fields.index(name) for name in ("server_id", "deployment_id")),
)
#: Insert targets.
add = _TARGETS.add_all
#: Delete all targets of a trigger.
delete: Callable[[Tx, str], None] = execute("DELETE FROM trigger_targets WHERE trigger_id = :trigger_id")
#: Return all targets of a trigger, in their order.
of_trigger: Callable[[Tx, str], list[Target]] = _TARGETS.lister("trigger_id = :trigger_id ORDER BY position")
#: Return the first targets of a trigger that have a deployment, at most a number.
list_started: Callable[[Tx, str, int], list[Target]] = _TARGETS.lister(
    "trigger_id = :trigger_id AND deployment_id IS NOT NULL ORDER BY position LIMIT :limit"
)
#: Return up to a number of targets of a trigger before a position that may start: queued ones that are not blocked.
list_startable: Callable[[Tx, str, int, int], list[Target]] = _TARGETS.lister(
    "trigger_id = :trigger_id AND status = 'QUEUED' AND NOT blocked AND position < :last ORDER BY position LIMIT :limit"
)
_unblock: Callable[[Tx, str, str, int], None] = put(
    "UPDATE trigger_targets SET blocked = FALSE WHERE trigger_id = :trigger_id AND server_id = :server_id"
    " AND position = (SELECT queued.position FROM trigger_targets AS queued WHERE queued.trigger_id = :trigger_id"
    " AND queued.status = 'QUEUED' AND queued.position > :position ORDER BY queued.position LIMIT 1)"
)
#: Without the input values, because a client that lists or follows a trigger reads all of its targets.
_STATES = _TARGETS.columns.replace("trigger_targets.input_values", "'{}'")
_OF_STATUS = "(CAST(:status AS text) IS NULL OR status = :status)"
_PAGE = sql(
    f"SELECT {_STATES} FROM trigger_targets WHERE trigger_id = :trigger_id AND position > :after AND {_OF_STATUS}"
    " ORDER BY position LIMIT :limit"
)
_CHANGED = sql(
    f"SELECT {_STATES} FROM trigger_targets WHERE trigger_id = :trigger_id"
    " AND (revision, position) > (:revision, :position) ORDER BY revision, position LIMIT :limit"
)
#: A transaction locks the trigger before its deployments, so no other transaction ends these in the meantime.
_TO_STOP = sql(
    f"SELECT {_TARGETS.columns} FROM trigger_targets"
    " JOIN deployments ON deployments.id = trigger_targets.deployment_id"
    " WHERE trigger_targets.trigger_id = :trigger_id AND trigger_targets.status = 'IN_PROGRESS'"
    " AND (:again OR NOT deployments.cancelling) ORDER BY trigger_targets.position LIMIT :limit"
)
#: Whether another run has started on the deployment's server, so that a run that the agent has received waits for it.
_IS_BUSY = (
    "EXISTS (SELECT 1 FROM deployments AS other WHERE other.server_id = deployments.server_id"
    " AND other.status = 'IN_PROGRESS' AND other.id != deployments.id AND other.started_at IS NOT NULL)"
)
#: Queued targets come first: the end of a running one would start the next one of its server.
_REPLACED = sql(
    f"SELECT {_TARGETS.columns} FROM trigger_targets"
    " JOIN trigger_targets AS newer ON newer.trigger_id = :newer_id AND newer.server_id = trigger_targets.server_id"
    " AND coalesce(newer.resource_name, '') = coalesce(trigger_targets.resource_name, '')"
    " LEFT JOIN deployments ON deployments.id = trigger_targets.deployment_id"
    " WHERE trigger_targets.trigger_id = :trigger_id AND (trigger_targets.status = 'QUEUED'"
    " OR trigger_targets.status = 'IN_PROGRESS' AND NOT deployments.cancelling AND deployments.started_at IS NULL"
    f" AND (NOT {MAY_HAVE_BEGUN} OR {_IS_BUSY}))"
    " ORDER BY trigger_targets.status DESC, trigger_targets.position DESC LIMIT :limit"
)
_ENDED = sql(
    f"SELECT {_STATES} FROM trigger_targets WHERE trigger_id = :trigger_id"
    f" AND status IN ('COMPLETE', 'FAILED', 'CANCELLED') AND {_OF_STATUS} ORDER BY position"
)
#: Return the ended targets of a trigger with a status, or None, in their order, without their input values.
list_ended: Callable[[Tx, str, str | None], list[Target]] = Query(_ENDED, _TARGETS.all)
#: With the facts of the servers, in whose output the triggers look for their names.
_OF_DEPLOYMENTS = sql(
    f"SELECT {_TARGETS.columns}, {FACTS.columns} FROM trigger_targets"
    f" LEFT JOIN {FACTS.table} ON {FACTS.table}.server_id = trigger_targets.server_id WHERE deployment_id @in(ids)"
)
_drop_queue: Callable[[Tx, str, int, str], int] = change(
    "UPDATE trigger_targets SET status = 'CANCELLED', status_reason = :reason, revision = :revision, updated_at = :now"
    " WHERE trigger_id = :id AND status = 'QUEUED'"
)


def list_changed(tx: Tx, trigger_id: str, after: tuple[int, int], limit: int) -> list[Target]:
    """
    Return the next ``limit`` targets of a trigger by revision and position, without their input values.

    ``after`` are the revision and the position of the last target that was read.
    """
    revision, position = after
    values = {"trigger_id": trigger_id, "revision": revision, "position": position, "limit": limit}
    return _TARGETS.all(tx, _CHANGED, values)


def page(tx: Tx, trigger_id: str, *, after: int = -1, limit: int, status: str | None = None) -> list[Target]:
    """
    Return the next ``limit`` targets of a trigger after the position ``after``, without their input values.

    ``status`` restricts them to those with this status.
    """
    values = {"trigger_id": trigger_id, "after": after, "limit": limit, "status": status}
    return _TARGETS.all(tx, _PAGE, values)


def unblock_following(tx: Tx, ended: Target) -> None:
    """
    Let the next queued target of the same server start, if there is one.

    A target that was blocked itself, and was cancelled, lets none start: an earlier one of the server still runs.
    """
    if not ended.blocked:
        _unblock(tx, ended.trigger_id, ended.server_id, ended.position)


def to_stop(tx: Tx, trigger_id: str, limit: int, *, again: bool = False) -> list[Target]:
    """
    Return running targets whose runs were not cancelled yet.

    ``again`` includes those that were cancelled but whose agents have not confirmed the stop.
    """
    return _TARGETS.all(tx, _TO_STOP, {"trigger_id": trigger_id, "limit": limit, "again": again})


def list_replaced(tx: Tx, trigger_id: str, newer_id: str, limit: int) -> list[Target]:
    """
    Return targets that no agent may have started, and that another trigger also has: the same resource on the same
    server. A run that waits in its agent for other runs counts as not started.

    Queued targets come first, the last one of each server before the others.
    """
    values = {"trigger_id": trigger_id, "newer_id": newer_id, "limit": limit, "polled_since": polled_since(tx)}
    return _TARGETS.all(tx, _REPLACED, values)


def of_deployment(tx: Tx, deployment_id: str) -> Target | None:
    """Return the target with this deployment, or None."""
    if ("target", deployment_id) not in tx.cache:
        prime(tx, (deployment_id,))
    row = tx.cache.get(("target", deployment_id))
    return None if row is None else _TARGETS.decode(row, tx.secrets)


def prime(tx: Tx, deployment_ids: Collection[str]) -> None:
    """
    Read the targets with these deployments at once, and the facts of their servers.

    ``of_deployment`` takes a target from memory, until it is saved, and ``servers.find_facts`` the facts.
    """
    for row in tx.fetch_all(_OF_DEPLOYMENTS, {"ids": rows.dump(list(deployment_ids))}):
        target, facts = row[:_WIDTH], row[_WIDTH:]
        tx.cache["target", target[_DEPLOYMENT]] = target
        tx.cache[FACTS.table, target[_SERVER]] = facts if facts[0] is not None else None


def save(tx: Tx, changed: Target) -> None:
    """Write the status and the deployment of a target."""
    if changed.deployment_id:
        tx.cache.pop(("target", changed.deployment_id), None)
    _TARGETS.save(tx, changed, later=True)


def drop_queue(tx: Tx, trigger_id: str, reason: str, revision: int) -> int:
    """Cancel all queued targets of a trigger, with this revision of the trigger; return their number."""
    return _drop_queue(tx, tx.secrets.redact(reason), revision, trigger_id)
