"""The end of a snapshot: what clouds have saved for its resources, or why the snapshot failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.model.status import Action, Status
from stoker.stacks.engine.session import StackSession
from stoker.store import resources, snapshots

#: Key of a snapshot's data for what clouds have saved, by the name of the resource.
SAVED = "saved"


def end_superseded(session: StackSession) -> None:
    """Fail the snapshot in progress, because another operation begins."""
    if session.stack.action is Action.SNAPSHOT and session.stack.status is Status.IN_PROGRESS:
        _end(session, Status.FAILED, "Another operation of the stack has superseded the snapshot.")


def end_snapshot(session: StackSession) -> None:
    """Complete or fail the snapshot in progress with the operation that has just ended."""
    if session.stack.action is Action.SNAPSHOT and session.stack.status is not Status.IN_PROGRESS:
        _end(session, session.stack.status, session.stack.reason)


def _end(session: StackSession, status: Status, reason: str) -> None:
    for snapshot in snapshots.in_progress(session.tx, session.stack.id):
        data = {**snapshot.data, SAVED: _saved(session)}
        snapshots.save(session.tx, replace(snapshot, status=status, reason=reason, data=data))


def _saved(session: StackSession) -> dict[str, Mapping[str, Any]]:
    """Return what the clouds saved for the current resources."""
    saved = {}
    for resource in resources.of_stack(session.tx, session.stack.id):
        kind = session.type_of(resource)
        if resource.current and resource.action is Action.SNAPSHOT and Action.SNAPSHOT in kind.actions:
            saved[resource.name] = kind.saved(session.context, resource)
    return {name: ids for name, ids in saved.items() if ids}
