"""Queries for selectors: groups whose members are the servers that a selector selects."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.selectors import Selector
from stoker.store import rows
from stoker.store.query import column, execute
from stoker.store.sql import sql
from stoker.store.tx import Tx

_put: Callable[[Tx, str, str, dict[str, str], str | None], None] = execute(
    "INSERT INTO selectors (resource_id, project_id, labels, text) VALUES (:resource, :project, :labels, :text)"
    " ON CONFLICT (resource_id) DO UPDATE SET labels = :labels, text = :text, waits_for = NULL"
)
#: Delete the selector of a group resource.
remove: Callable[[Tx, str], None] = execute("DELETE FROM selectors WHERE resource_id = :resource_id")
_OF_PROJECT = sql("SELECT resource_id, labels, text FROM selectors WHERE project_id = :project_id")
#: Record the stack after whose operation a group has to be refreshed: (transaction, stack id, resource id).
wait: Callable[[Tx, str, str], None] = execute("UPDATE selectors SET waits_for = :stack WHERE resource_id = :resource")
#: Return the groups that wait for a stack, and end their wait.
release: Callable[[Tx, str], list[str]] = column(
    "UPDATE selectors SET waits_for = NULL WHERE waits_for = :stack RETURNING resource_id"
)


def lock(tx: Tx, project_id: str) -> None:
    """
    Lock the labels, facts and selectors of a project until the transaction ends.

    If a group and a label are added at the same time, one transaction thereby sees the change of the other.
    """
    tx.advisory_lock(f"labels of {project_id}")


def put(tx: Tx, resource_id: str, project_id: str, selector: Selector) -> None:
    """Insert or replace the selector of a group resource. The group no longer waits for a stack."""
    _put(tx, resource_id, project_id, dict(selector.labels), selector.text)


def of_project(tx: Tx, project_id: str) -> list[tuple[str, Selector]]:
    """Return the project's selectors: (resource id, selector)."""
    stored = tx.fetch_all(_OF_PROJECT, {"project_id": project_id})
    return [(id, Selector(labels=rows.load(labels), text=text)) for id, labels, text in stored]
