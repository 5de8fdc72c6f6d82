"""Queries for selectors: groups whose members are the servers with certain labels."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from stoker.store import rows, statements
from stoker.store.schema import selectors
from stoker.store.tx import Tx

_PUT = sa.text(
    "INSERT INTO selectors (resource_id, project_id, labels) VALUES (:resource, :project, :labels)"
    " ON CONFLICT (resource_id) DO UPDATE SET labels = :labels, waits_for = NULL"
)
_REMOVE = statements.delete(selectors, "resource_id")
_OF_PROJECT = sa.select(selectors.c.resource_id, selectors.c.labels).where(*statements.equal(selectors, "project_id"))
_WAIT = statements.update(selectors, "waits_for", key=("resource_id",))
_RELEASE = (
    sa.update(selectors)
    .where(selectors.c.waits_for == sa.bindparam("stack"))
    .values(waits_for=None)
    .returning(selectors.c.resource_id)
)


def lock(tx: Tx, project_id: str) -> None:
    """
    Lock the labels and selectors of a project until the transaction ends.

    If a group and a label are added at the same time, one transaction thereby sees the change of the other.
    """
    tx.advisory_lock(f"labels of {project_id}")


def put(tx: Tx, resource_id: str, project_id: str, labels: Mapping[str, str]) -> None:
    """Insert or replace the selector of a group resource. The group no longer waits for a stack."""
    tx.execute_fast(_PUT, {"resource": resource_id, "project": project_id, "labels": rows.dump(labels)})


def remove(tx: Tx, resource_id: str) -> None:
    """Delete the selector of a group resource."""
    tx.execute_fast(_REMOVE, {"resource_id": resource_id})


def of_project(tx: Tx, project_id: str) -> list[tuple[str, dict[str, str]]]:
    """Return the project's selectors: (resource id, labels)."""
    return [(id, rows.load(labels)) for id, labels in tx.fetch_all(_OF_PROJECT, {"project_id": project_id})]


def wait(tx: Tx, resource_id: str, stack_id: str) -> None:
    """Record that the group has to be refreshed when the current operation of the stack has ended."""
    tx.execute_fast(_WAIT, {"key_resource_id": resource_id, "waits_for": stack_id})


def release(tx: Tx, stack_id: str) -> list[str]:
    """Return the groups that wait for this stack, and end their wait."""
    return [row[0] for row in tx.fetch_all(_RELEASE, {"stack": stack_id})]
