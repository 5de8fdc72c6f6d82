"""
Queries for remote objects: the desired and observed state of Stoker's objects and queues in an external Swift or Zaqar,
and the times at which Stoker polls them for results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from msgspec import Struct

from stoker.store import rows
from stoker.store.query import change, column, execute, scalar
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: VERSIONS: objects of which every version is a signal.
OBJECT, QUEUE, VERSIONS = "object", "queue", "versions"


class RemoteObject(Struct, frozen=True, kw_only=True):
    """A row of the table. The object is pending while ``observed_generation`` is less than ``desired_generation``."""

    id: str
    kind: str
    name: str
    project_id: str
    resource_id: str
    #: JSON.
    body: str | None
    desired_generation: int
    observed_generation: int
    is_removed: bool
    poll_at: int | None
    poll_interval: timedelta
    awaited_until: datetime | None
    signed_method: str | None
    last_result: str | None
    details: Mapping[str, Any]


REMOTE_OBJECTS = Repository(RemoteObject, "remote_objects")
find = REMOTE_OBJECTS.find
#: An unchanged desired state does not increment the generation.
_SET_DESIRED = sql(
    """INSERT INTO remote_objects (id, kind, name, project_id, resource_id, body, desired_generation,
        observed_generation, is_removed, poll_interval, details, signed_method)
    VALUES (:id, :kind, :name, :project_id, :resource_id, :body, 1, :observed_generation, false, 0, '{}',
        :signed_method)
    ON CONFLICT (kind, name) DO UPDATE SET
    body = coalesce(excluded.body, remote_objects.body),
    signed_method = coalesce(excluded.signed_method, remote_objects.signed_method),
    details = CASE WHEN remote_objects.is_removed THEN '{}' ELSE remote_objects.details END,
    desired_generation = remote_objects.desired_generation
        + CASE WHEN remote_objects.is_removed OR excluded.body IS NOT NULL
            OR coalesce(excluded.signed_method, remote_objects.signed_method, '')
            <> coalesce(remote_objects.signed_method, '') THEN 1 ELSE 0 END,
    observed_generation = CASE WHEN remote_objects.is_removed AND excluded.observed_generation = 1
        THEN remote_objects.desired_generation + 1 ELSE remote_objects.observed_generation END,
    is_removed = false
    RETURNING id, observed_generation < desired_generation"""
)
#: Request the removal of a remote object, by its kind and name. Return its id, or None if there is none or its removal
#: was requested before.
mark_removed: Callable[[Tx, str, str], str | None] = scalar(
    "UPDATE remote_objects SET is_removed = true, desired_generation = desired_generation + 1, poll_at = NULL,"
    " body = NULL WHERE kind = :kind AND name = :name AND NOT is_removed RETURNING id"
)
#: Return the ids of the objects of a kind whose observed state differs from the desired state.
pending: Callable[[Tx, str], list[str]] = column(
    "SELECT id FROM remote_objects WHERE kind = :kind AND observed_generation < desired_generation"
)
#: Request a new signed URL for an object without a body; return 0 if the URL is no longer desired.
renew: Callable[[Tx, str], int] = change(
    "UPDATE remote_objects SET desired_generation = desired_generation + 1"
    " WHERE id = :id AND NOT is_removed AND body IS NULL AND signed_method IS NOT NULL"
)
#: Return the remote object of a kind and name, or None if there is none or its removal was requested.
find_by_name: Callable[[Tx, str, str], RemoteObject | None] = REMOTE_OBJECTS.finder(
    "kind = :kind AND name = :name AND NOT is_removed"
)
_set_observed: Callable[[Tx, int, str, str], None] = execute(
    "UPDATE remote_objects SET observed_generation = :generation, details = :details WHERE id = :id"
)
#: Delete the row of an object that was removed in the service with this generation, unless it is desired again.
delete: Callable[[Tx, str, int], None] = execute(
    "DELETE FROM remote_objects WHERE id = :id AND is_removed AND desired_generation = :generation"
)
#: Return the objects to be removed: by request, or because no resource, server or deployment owns them any more. A
#: server may outlive its resource, so it counts as an owner.
orphans: Callable[[Tx], list[RemoteObject]] = REMOTE_OBJECTS.lister(
    "is_removed OR NOT EXISTS (SELECT 1 FROM resources WHERE resources.id = remote_objects.resource_id)"
    " AND NOT EXISTS (SELECT 1 FROM servers WHERE servers.id = remote_objects.resource_id)"
    " AND NOT EXISTS (SELECT 1 FROM deployments WHERE deployments.id = remote_objects.resource_id) ORDER BY kind, name"
)
#: Return those of the names that belong to remote objects of a kind.
list_known: Callable[[Tx, str, Collection[str]], list[str]] = column(
    "SELECT name FROM remote_objects WHERE kind = :kind AND name @in(names)"
)
#: Start polling a remote object at a time, with a pause between polls. The second time is for signals without a run:
#: until then, a signal is expected.
start_polling: Callable[[Tx, datetime, timedelta, datetime | None, str, str], None] = execute(
    "UPDATE remote_objects SET poll_at = :at, poll_interval = :every, awaited_until = :until"
    " WHERE kind = :kind AND name = :name AND NOT is_removed"
)
#: Make the poll of a resource's queue due, with this pause, after a notification of a result; return 0 if the queue is
#: not polled.
poll_now: Callable[[Tx, timedelta, str], int] = change(
    "UPDATE remote_objects SET poll_at = :now, poll_interval = :every"
    f" WHERE resource_id = :resource AND kind = '{QUEUE}' AND poll_at IS NOT NULL"
)
#: With the start of the run, not the deployment's last change: a cancellation changes the deployment but does not make
#: a result stale. Without a resource, the object belongs to a deployment.
_DUE = sql(
    f"""SELECT {REMOTE_OBJECTS.columns}, deployments.status,
    coalesce(deployments.queued_at, deployments.created_at)
    FROM remote_objects LEFT JOIN resources ON resources.id = remote_objects.resource_id
    LEFT JOIN deployments ON deployments.id = coalesce(resources.physical_id, remote_objects.resource_id)
    WHERE remote_objects.kind = :kind AND remote_objects.poll_at <= :now
    ORDER BY remote_objects.poll_at LIMIT :most"""
)
_find_next: Callable[[Tx, str], int | None] = scalar(
    "SELECT min(poll_at) FROM remote_objects WHERE kind = :kind AND poll_at IS NOT NULL"
)
#: Not if another transaction has set another time in the meantime.
_set_next_poll: Callable[[Tx, datetime | None, timedelta, str, int | None], None] = execute(
    "UPDATE remote_objects SET poll_at = :at, poll_interval = :every WHERE id = :id AND poll_at = :was"
)
#: Record the identifier of a processed result; for objects with versions, add it to the earlier ones.
set_result: Callable[[Tx, str, str], None] = execute(
    f"UPDATE remote_objects SET last_result = CASE WHEN kind = '{VERSIONS}' THEN coalesce(last_result || ' ', '')"
    " ELSE '' END || :what WHERE id = :id"
)


@dataclass(frozen=True, slots=True)
class Due:
    """A remote object that is due for polling."""

    remote_object: RemoteObject
    #: When the run with the expected result began. For signals without a run, long ago; None: no signal is expected.
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of a poll: when to poll the object again."""

    remote_object: RemoteObject
    #: None: the object is not polled any more.
    next_at: datetime | None
    interval: timedelta = timedelta(0)


def set_desired(
    tx: Tx,
    kind: str,
    name: str,
    project_id: str,
    resource_id: str,
    body: str | None = None,
    signed_method: str | None = None,
    *,
    has_polling: bool = False,
) -> tuple[str, bool]:
    """
    Set the desired state of a remote object; return its id and whether it is pending.

    ``body`` is the desired content; None keeps the previous one. ``signed_method`` requests a signed URL for this HTTP
    method. ``has_polling`` states that nothing has to be created in the service before the object is used.
    """
    values = {"kind": kind, "name": name, "project_id": project_id, "resource_id": resource_id}
    more = {"id": str(uuid4()), "signed_method": signed_method, "observed_generation": int(has_polling)}
    more["body"] = None if body is None else tx.secrets.encrypt(body, always=True)
    id, is_due = tx.execute_fast(_SET_DESIRED, {**values, **more})
    return id, bool(is_due)


def set_observed(tx: Tx, remote_object: RemoteObject, details: Mapping[str, Any]) -> None:
    """Record that the state in ``remote_object`` has been applied, with the driver's ``details``."""
    encrypted = tx.secrets.dump(details, always=bool(details))
    _set_observed(tx, remote_object.desired_generation, encrypted, remote_object.id)


def due_polls(tx: Tx, kind: str, limit: int) -> list[Due]:
    """Return at most ``limit`` remote objects of this kind that are due for polling."""
    result = tx.fetch_all(_DUE, {"kind": kind, "now": rows.to_micros(tx.now), "most": limit})
    return [_due(REMOTE_OBJECTS.decode(row, tx.secrets), row, tx.now) for row in result]


def _due(remote_object: RemoteObject, row: Any, now: datetime) -> Due:
    status, began = row[-2:]
    if status == "IN_PROGRESS":
        return Due(remote_object, rows.from_micros(began))
    until = remote_object.awaited_until
    return Due(remote_object, rows.EPOCH if until is not None and until > now else None)


def next_poll(tx: Tx, kind: str) -> datetime | None:
    """Return the time of the next poll of this kind of object, or None."""
    next_at = _find_next(tx, kind)
    return None if next_at is None else rows.from_micros(next_at)


def record_polls(tx: Tx, done: Iterable[Polled]) -> None:
    """Set the next poll of each object, unless another transaction has set another time."""
    for poll in done:
        _set_next_poll(tx, poll.next_at, poll.interval, poll.remote_object.id, poll.remote_object.poll_at)
