"""The enrollments API, a Stoker extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.references import choose
from stoker_client.shapes import Enrollment, EnrollmentToken

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Enrollments:
    """Calls to the enrollments API. ``ref`` is an id, or its beginning."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Enrollment]:
        """Return the enrollments of the project, without their tokens."""
        return cast(list[Enrollment], part(self._wire.get("/enrollments"), "enrollments"))

    def create(self, limit: int, **options: Any) -> EnrollmentToken:
        """
        Create a token for up to ``limit`` machines.

        ``options`` are those of the API: ``expires_in`` (seconds), ``name_from``, ``names``, ``labels``,
        ``approval``, ``download``, ``proxy``.
        """
        return cast(
            EnrollmentToken, part(self._wire.send("POST", "/enrollments", {"limit": limit, **options}), "enrollment")
        )

    def delete(self, ref: str) -> None:
        """Revoke a token. Servers that were enrolled with it keep their keys."""
        id_ = choose(self.all(), ref, "enrollment")["id"]
        self._wire.send("DELETE", f"/enrollments/{segment(id_)}")
