"""Queries for enrollments."""

from __future__ import annotations

from datetime import datetime

from stoker.model.server import Enrollment
from stoker.store import rows
from stoker.store.repository import Repository, require
from stoker.store.sql import delete as delete_by
from stoker.store.sql import sql
from stoker.store.tx import Tx

_ENROLLMENTS = Repository(Enrollment, "enrollments")
_OF_TOKEN = _ENROLLMENTS.by("token_hash")
_LIST = _ENROLLMENTS.select("project_id = :project_id ORDER BY created_at, id")
_DROP = delete_by("enrollments", "server_id")
_DROP_EXPIRED = sql("DELETE FROM enrollments WHERE project_id = :project_id AND expires_at < :before")


def add(tx: Tx, new: Enrollment) -> None:
    """Insert an enrollment."""
    _ENROLLMENTS.add(tx, new)


def of_token(tx: Tx, token_hash: str) -> Enrollment | None:
    """
    Return the enrollment with this token, or None, and lock its row: two agents cannot take its last place.
    """
    return _ENROLLMENTS.first(tx, _OF_TOKEN, {"token_hash": token_hash}, for_update=True)


def get(tx: Tx, id: str, project_id: str) -> Enrollment:
    """Return the project's enrollment. Raises EntityNotFound."""
    return require(_ENROLLMENTS.find(tx, id), "Enrollment", id, project_id)


def list_all(tx: Tx, project_id: str) -> list[Enrollment]:
    """Return the project's enrollments, oldest first."""
    return _ENROLLMENTS.all(tx, _LIST, {"project_id": project_id})


def count_use(tx: Tx, enrollment: Enrollment) -> None:
    """Count one more machine that has redeemed the token of a locked enrollment."""
    _ENROLLMENTS.update(tx, enrollment.id, uses=enrollment.uses + 1)


def delete(tx: Tx, id: str) -> None:
    """Delete an enrollment. Its token becomes invalid."""
    _ENROLLMENTS.delete(tx, id)


def drop_of_server(tx: Tx, server_id: str) -> None:
    """Delete the enrollments for this server."""
    tx.execute_fast(_DROP, {"server_id": server_id})


def drop_expired(tx: Tx, project_id: str, before: datetime) -> None:
    """Delete the project's enrollments that expired before this time."""
    tx.execute_fast(_DROP_EXPIRED, {"project_id": project_id, "before": rows.to_micros(before)})
