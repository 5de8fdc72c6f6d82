"""Which groups are of whatever servers have certain labels, in SQL."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from stoker.store import rows
from stoker.store.schema import selectors
from stoker.store.tx import Tx

_PUT = sa.text(
    "INSERT INTO selectors (resource_id, project_id, labels) VALUES (:resource, :project, :labels)"
    " ON CONFLICT (resource_id) DO UPDATE SET labels = :labels, waits_for = NULL"
)
_REMOVE = sa.delete(selectors).where(selectors.c.resource_id == sa.bindparam("resource"))
_OF_PROJECT = sa.select(selectors.c.resource_id, selectors.c.labels).where(
    selectors.c.project_id == sa.bindparam("project")
)
_WAIT = (
    sa.update(selectors)
    .where(selectors.c.resource_id == sa.bindparam("resource"))
    .values(waits_for=sa.bindparam("stack"))
)
_RELEASE = (
    sa.update(selectors)
    .where(selectors.c.waits_for == sa.bindparam("stack"))
    .values(waits_for=None)
    .returning(selectors.c.resource_id)
)


def hold(tx: Tx, project_id: str) -> None:
    """
    Until this transaction ends no other one looks who has which labels, or who asks for them: of a group that comes and
    a label that comes at the same time, one sees the other.
    """
    tx.alone(f"labels of {project_id}")


def put(tx: Tx, resource_id: str, project_id: str, labels: Mapping[str, str]) -> None:
    tx.run(_PUT, {"resource": resource_id, "project": project_id, "labels": rows.dump(labels)})


def remove(tx: Tx, resource_id: str) -> None:
    tx.run(_REMOVE, {"resource": resource_id})


def of_project(tx: Tx, project_id: str) -> list[tuple[str, dict[str, str]]]:
    """Resources and the labels that they ask for."""
    return [(row.resource_id, rows.load(row.labels)) for row in tx.run(_OF_PROJECT, {"project": project_id})]


def wait(tx: Tx, resource_id: str, stack_id: str) -> None:
    """The group is to be looked at again once that stack's operation has ended."""
    tx.run(_WAIT, {"resource": resource_id, "stack": stack_id})


def release(tx: Tx, stack_id: str) -> list[str]:
    """The groups that waited for that stack, which they do no more."""
    return [row.resource_id for row in tx.run(_RELEASE, {"stack": stack_id})]
