"""Queries for selectors: groups whose members are the servers that a selector selects."""

from __future__ import annotations

from stoker.model.selectors import Selector
from stoker.store import rows
from stoker.store.sql import delete, sql, update
from stoker.store.tx import Tx

_PUT = sql(
    "INSERT INTO selectors (resource_id, project_id, labels, text) VALUES (:resource, :project, :labels, :text)"
    " ON CONFLICT (resource_id) DO UPDATE SET labels = :labels, text = :text, waits_for = NULL"
)
_REMOVE = delete("selectors", "resource_id")
_OF_PROJECT = sql("SELECT resource_id, labels, text FROM selectors WHERE project_id = :project_id")
_WAIT = update("selectors", "waits_for", key=("resource_id",))
_RELEASE = sql("UPDATE selectors SET waits_for = NULL WHERE waits_for = :stack RETURNING resource_id")


def lock(tx: Tx, project_id: str) -> None:
    """
    Lock the labels, facts and selectors of a project until the transaction ends.

    If a group and a label are added at the same time, one transaction thereby sees the change of the other.
    """
    tx.advisory_lock(f"labels of {project_id}")


def put(tx: Tx, resource_id: str, project_id: str, selector: Selector) -> None:
    """Insert or replace the selector of a group resource. The group no longer waits for a stack."""
    values = {"resource": resource_id, "project": project_id, "labels": rows.dump(selector.labels)}
    tx.execute_fast(_PUT, {**values, "text": selector.text})


def remove(tx: Tx, resource_id: str) -> None:
    """Delete the selector of a group resource."""
    tx.execute_fast(_REMOVE, {"resource_id": resource_id})


def of_project(tx: Tx, project_id: str) -> list[tuple[str, Selector]]:
    """Return the project's selectors: (resource id, selector)."""
    stored = tx.fetch_all(_OF_PROJECT, {"project_id": project_id})
    return [(id, Selector(labels=rows.load(labels), text=text)) for id, labels, text in stored]


def wait(tx: Tx, resource_id: str, stack_id: str) -> None:
    """Record that the group has to be refreshed when the current operation of the stack has ended."""
    tx.execute_fast(_WAIT, {"key_resource_id": resource_id, "waits_for": stack_id})


def release(tx: Tx, stack_id: str) -> list[str]:
    """Return the groups that wait for this stack, and end their wait."""
    return [row[0] for row in tx.fetch_all(_RELEASE, {"stack": stack_id})]
