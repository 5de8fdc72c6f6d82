"""What Stoker has, or is to have, in a Swift or a Zaqar, in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from stoker.store import rows
from stoker.store.schema import deployments, lodgings, resources, servers
from stoker.store.tx import Tx

#: VERSIONS are objects of which every version counts.
OBJECT, QUEUE, VERSIONS = "object", "queue", "versions"

_WANT = sa.text(
    "INSERT INTO lodgings"
    " (id, kind, name, project_id, resource_id, body, revision, reached, gone, pause, details, opens_to)"
    " VALUES (:id, :kind, :name, :project_id, :resource_id, :body, 1, :reached, false, 0, '{}', :opens_to)"
    " ON CONFLICT (kind, name) DO UPDATE SET"
    " body = COALESCE(excluded.body, lodgings.body), opens_to = COALESCE(excluded.opens_to, lodgings.opens_to),"
    " details = CASE WHEN lodgings.gone THEN '{}' ELSE lodgings.details END,"
    # What is wanted already is not wanted anew.
    " revision = lodgings.revision + CASE WHEN lodgings.gone OR excluded.body IS NOT NULL"
    " OR COALESCE(excluded.opens_to, lodgings.opens_to, '') <> COALESCE(lodgings.opens_to, '') THEN 1 ELSE 0 END,"
    " reached = CASE WHEN lodgings.gone AND :reached = 1 THEN lodgings.revision + 1 ELSE lodgings.reached END,"
    " gone = false"
    " RETURNING id, reached < revision AS due"
)
_GONE = sa.text(
    "UPDATE lodgings SET gone = true, revision = revision + 1, look_at = NULL, body = NULL"
    " WHERE kind = :kind AND name = :name AND NOT gone RETURNING id"
)
_BEHIND = sa.select(lodgings.c.id).where(
    lodgings.c.kind == sa.bindparam("of"), lodgings.c.reached < lodgings.c.revision
)
_RENEW = (
    sa.update(lodgings)
    .where(
        lodgings.c.id == sa.bindparam("id_"),
        sa.not_(lodgings.c.gone),
        lodgings.c.body.is_(None),
        lodgings.c.opens_to.is_not(None),
    )
    .values(revision=lodgings.c.revision + 1)
)
_ONE = sa.select(lodgings).where(lodgings.c.id == sa.bindparam("id"))
_NAMED = sa.select(lodgings).where(
    lodgings.c.kind == sa.bindparam("of"), lodgings.c.name == sa.bindparam("named"), sa.not_(lodgings.c.gone)
)
_REACHED = (
    sa.update(lodgings)
    .where(lodgings.c.id == sa.bindparam("id_"))
    .values(reached=sa.bindparam("upto"), details=sa.bindparam("new_details"))
)
_FORGET = sa.delete(lodgings).where(
    lodgings.c.id == sa.bindparam("id_"), lodgings.c.gone, lodgings.c.revision == sa.bindparam("upto")
)
_LEFT_OVER = (
    sa.select(lodgings)
    .where(
        sa.or_(
            lodgings.c.gone,
            sa.and_(
                sa.not_(sa.exists().where(resources.c.id == lodgings.c.resource_id)),
                sa.not_(sa.exists().where(servers.c.id == lodgings.c.resource_id)),
                sa.not_(sa.exists().where(deployments.c.id == lodgings.c.resource_id)),
            ),
        )
    )
    .order_by(lodgings.c.kind, lodgings.c.name)
)
_KNOWN = sa.select(lodgings.c.name).where(
    lodgings.c.kind == sa.bindparam("of"), lodgings.c.name.in_(sa.bindparam("names", expanding=True))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lodging:
    id: str
    kind: str
    name: str
    project_id: str
    resource_id: str
    #: JSON.
    body: str | None
    revision: int
    reached: int
    gone: bool
    look_at: int | None
    pause: timedelta
    awaited_until: datetime | None
    opens_to: str | None
    heard: str | None
    details: Mapping[str, Any]


def want(
    tx: Tx,
    kind: str,
    name: str,
    project_id: str,
    resource_id: str,
    body: str | None = None,
    opens_to: str | None = None,
    *,
    comes_by_itself: bool = False,
) -> tuple[str, bool]:
    """
    Have ``body`` there from now on, or what is wanted there already if it is None; and a URL signed that opens it to a
    method. ``comes_by_itself``: nothing has to be made there before it is used. Returns the lodging's id, and whether
    it has to be brought there.
    """
    values = {"kind": kind, "name": name, "project_id": project_id, "resource_id": resource_id, "body": body}
    more = {"id": str(uuid4()), "opens_to": opens_to, "reached": int(comes_by_itself)}
    found = tx.run(_WANT, {**values, **more}).one()
    return found.id, bool(found.due)


def end(tx: Tx, kind: str, name: str) -> str | None:
    """It is to go; None: there is none of that name that is not going already."""
    id: str | None = tx.run(_GONE, {"kind": kind, "name": name}).scalar()
    return id


def renew(tx: Tx, id: str) -> bool:
    """The signed URL of one that is no document's is wanted anew; False: nobody wants it any more."""
    return tx.run(_RENEW, {"id_": id}).rowcount > 0


def behind(tx: Tx, kind: str) -> list[str]:
    """The ids of those that are not there yet as they are wanted."""
    return list(tx.run(_BEHIND, {"of": kind}).scalars())


def find(tx: Tx, id: str) -> Lodging | None:
    row = tx.run(_ONE, {"id": id}).first()
    return None if row is None else loaded(row)


def named(tx: Tx, kind: str, name: str) -> Lodging | None:
    row = tx.run(_NAMED, {"of": kind, "named": name}).first()
    return None if row is None else loaded(row)


def reached(tx: Tx, lodging: Lodging, details: Mapping[str, Any]) -> None:
    """What was wanted of it, as ``lodging`` says, is there."""
    tx.run(_REACHED, {"id_": lodging.id, "upto": lodging.revision, "new_details": rows.dump(details)})


def forget(tx: Tx, lodging: Lodging) -> None:
    """It is gone there, too; it stays when it was asked for again meanwhile."""
    tx.run(_FORGET, {"id_": lodging.id, "upto": lodging.revision})


def left_over(tx: Tx) -> list[Lodging]:
    """Those that are to go, and those whose resource is no more; a server may outlive its resource."""
    return [loaded(row) for row in tx.run(_LEFT_OVER)]


def known(tx: Tx, kind: str, names: Sequence[str]) -> set[str]:
    """Those of the names that are lodgings'."""
    return {row.name for row in tx.run(_KNOWN, {"of": kind, "names": list(names)})} if names else set()


def loaded(row: Any) -> Lodging:
    """From a row of the table."""
    return Lodging(
        id=row.id,
        kind=row.kind,
        name=row.name,
        project_id=row.project_id,
        resource_id=row.resource_id,
        body=row.body,
        revision=row.revision,
        reached=row.reached,
        gone=row.gone,
        look_at=row.look_at,
        pause=timedelta(microseconds=row.pause),
        awaited_until=rows.moment_optional(row.awaited_until),
        opens_to=row.opens_to,
        heard=row.heard,
        details=rows.load(row.details),
    )
