"""Queries for enrollments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stoker.model.server import Enrollment
from stoker.store.query import execute
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_ENROLLMENTS = Repository(Enrollment, "enrollments", noun="Enrollment")
add, get, delete = _ENROLLMENTS.add, _ENROLLMENTS.get, _ENROLLMENTS.delete
#: Return the enrollment with the token of this hash, and lock its row: two agents cannot take its last place.
of_token: Callable[[Tx, str], Enrollment | None] = _ENROLLMENTS.finder("token_hash = :token_hash @for_update")
#: Return the enrollments of a project, oldest first.
list_all: Callable[[Tx, str], list[Enrollment]] = _ENROLLMENTS.lister(
    "project_id = :project_id ORDER BY created_at, id"
)
drop_of_server: Callable[[Tx, str], None] = execute("DELETE FROM enrollments WHERE server_id = :server_id")
#: Delete the enrollments of a project that expired before a time.
drop_expired: Callable[[Tx, str, datetime], None] = execute(
    "DELETE FROM enrollments WHERE project_id = :project_id AND expires_at < :before"
)


def count_use(tx: Tx, enrollment: Enrollment) -> None:
    """Count one more machine that has redeemed the token of a locked enrollment."""
    _ENROLLMENTS.update(tx, enrollment.id, uses=enrollment.uses + 1)
