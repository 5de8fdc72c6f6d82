"""
Queries for remote objects: the desired and observed state of Stoker's objects and queues in an external Swift or Zaqar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from stoker.store import statements
from stoker.store.repository import Repository
from stoker.store.schema import deployments, remote_objects, resources, servers
from stoker.store.tx import Tx

#: VERSIONS: objects of which every version is a signal.
OBJECT, QUEUE, VERSIONS = "object", "queue", "versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteObject:
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


REMOTE_OBJECTS = Repository(RemoteObject, remote_objects)
_SET_DESIRED = sa.text(
    "INSERT INTO remote_objects"
    " (id, kind, name, project_id, resource_id, body, desired_generation, observed_generation, is_removed,"
    " poll_interval, details, signed_method)"
    " VALUES (:id, :kind, :name, :project_id, :resource_id, :body, 1, :observed_generation, false, 0, '{}',"
    " :signed_method)"
    " ON CONFLICT (kind, name) DO UPDATE SET"
    " body = COALESCE(excluded.body, remote_objects.body), signed_method = COALESCE(excluded.signed_method,"
    " remote_objects.signed_method),"
    " details = CASE WHEN remote_objects.is_removed THEN '{}' ELSE remote_objects.details END,"
    # An unchanged desired state does not increment the generation.
    " desired_generation = remote_objects.desired_generation + CASE WHEN remote_objects.is_removed OR"
    " excluded.body IS NOT NULL"
    " OR COALESCE(excluded.signed_method, remote_objects.signed_method, '') <>"
    " COALESCE(remote_objects.signed_method, '') THEN 1 ELSE 0 END,"
    " observed_generation = CASE WHEN remote_objects.is_removed AND :observed_generation = 1 THEN"
    " remote_objects.desired_generation + 1 ELSE remote_objects.observed_generation END,"
    " is_removed = false"
    " RETURNING id, observed_generation < desired_generation AS due"
)
_MARK_REMOVED = sa.text(
    "UPDATE remote_objects SET is_removed = true, desired_generation = desired_generation + 1, poll_at = NULL,"
    " body = NULL"
    " WHERE kind = :kind AND name = :name AND NOT is_removed RETURNING id"
)
_PENDING = sa.select(remote_objects.c.id).where(
    remote_objects.c.kind == sa.bindparam("of"),
    remote_objects.c.observed_generation < remote_objects.c.desired_generation,
)
_RENEW = (
    sa.update(remote_objects)
    .where(
        remote_objects.c.id == sa.bindparam("id_"),
        sa.not_(remote_objects.c.is_removed),
        remote_objects.c.body.is_(None),
        remote_objects.c.signed_method.is_not(None),
    )
    .values(desired_generation=remote_objects.c.desired_generation + 1)
)
_NAMED = REMOTE_OBJECTS.by("kind", "name").where(sa.not_(remote_objects.c.is_removed))
_SET_OBSERVED = statements.update(remote_objects, "observed_generation", "details")
_DELETE = sa.delete(remote_objects).where(
    remote_objects.c.id == sa.bindparam("id_"),
    remote_objects.c.is_removed,
    remote_objects.c.desired_generation == sa.bindparam("upto"),
)
_ORPHANS = REMOTE_OBJECTS.select(
    sa.or_(
        remote_objects.c.is_removed,
        sa.and_(
            sa.not_(sa.exists().where(resources.c.id == remote_objects.c.resource_id)),
            sa.not_(sa.exists().where(servers.c.id == remote_objects.c.resource_id)),
            sa.not_(sa.exists().where(deployments.c.id == remote_objects.c.resource_id)),
        ),
    )
).order_by(remote_objects.c.kind, remote_objects.c.name)
_KNOWN = sa.select(remote_objects.c.name).where(
    remote_objects.c.kind == sa.bindparam("of"), remote_objects.c.name.in_(sa.bindparam("names", expanding=True))
)


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


def mark_removed(tx: Tx, kind: str, name: str) -> str | None:
    """
    Request the removal of a remote object; return its id, or None if there is none or its removal was requested before.
    """
    id: str | None = tx.scalar(_MARK_REMOVED, {"kind": kind, "name": name})
    return id


def renew(tx: Tx, id: str) -> bool:
    """Request a new signed URL for an object without a body. Return False if the URL is no longer desired."""
    return tx.run(_RENEW, {"id_": id}).rowcount > 0


def pending(tx: Tx, kind: str) -> list[str]:
    """Return the ids of the objects of this kind whose observed state differs from the desired state."""
    return [row[0] for row in tx.fetch_all(_PENDING, {"of": kind})]


def find(tx: Tx, id: str) -> RemoteObject | None:
    """Return the remote object with this id, or None."""
    return REMOTE_OBJECTS.find(tx, id)


def find_by_name(tx: Tx, kind: str, name: str) -> RemoteObject | None:
    """Return the remote object with this name, or None if there is none or its removal was requested."""
    return REMOTE_OBJECTS.first(tx, _NAMED, {"kind": kind, "name": name})


def set_observed(tx: Tx, remote_object: RemoteObject, details: Mapping[str, Any]) -> None:
    """Record that the state in ``remote_object`` has been applied, with the driver's ``details``."""
    values = {
        "observed_generation": remote_object.desired_generation,
        "details": tx.secrets.dump(details, always=bool(details)),
    }
    tx.execute_fast(_SET_OBSERVED, {"key_id": remote_object.id, **values})


def delete(tx: Tx, remote_object: RemoteObject) -> None:
    """Delete the row of an object that was removed in the service, unless it is desired again."""
    tx.execute_fast(_DELETE, {"id_": remote_object.id, "upto": remote_object.desired_generation})


def orphans(tx: Tx) -> list[RemoteObject]:
    """
    Return the objects to be removed: by request, or because no resource, server or deployment owns them any more.

    A server may outlive its resource, so it counts as an owner.
    """
    return REMOTE_OBJECTS.all(tx, _ORPHANS, {})


def known_names(tx: Tx, kind: str, names: Sequence[str]) -> set[str]:
    """Return those of the names that belong to remote objects of this kind."""
    return {row.name for row in tx.run(_KNOWN, {"of": kind, "names": list(names)})} if names else set()
