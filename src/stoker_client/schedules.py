"""The schedules API, a Stoker extension: triggers at set times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.references import choose, is_id
from stoker_client.shapes import Schedule

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Schedules:
    """Calls to the schedules API. ``ref`` is an id, a name or a unique prefix of an id."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Schedule]:
        """Return the schedules of the project."""
        return cast(list[Schedule], part(self._wire.get("/software_schedules"), "software_schedules"))

    def show(self, id_: str) -> Schedule:
        """Return one schedule."""
        return cast(Schedule, part(self._wire.get(_path(id_)), "software_schedule"))

    def find(self, ref: str) -> Schedule:
        """Return a schedule by its id, its name or a prefix of its id."""
        return self.show(ref) if is_id(ref) else choose(self.all(), ref, "schedule")

    def find_id(self, ref: str) -> str:
        """Return the id of a schedule. Raises NotFound or Ambiguous."""
        return ref if is_id(ref) else self.find(ref)["id"]

    def create(self, body: Mapping[str, Any]) -> Schedule:
        """Create a schedule."""
        answer = self._wire.send("POST", "/software_schedules", {"software_schedule": body})
        return cast(Schedule, part(answer, "software_schedule"))

    def change(self, ref: str, changes: Mapping[str, Any]) -> Schedule:
        """Change the given attributes."""
        path = _path(self.find_id(ref))
        return cast(Schedule, part(self._wire.send("PATCH", path, {"software_schedule": changes}), "software_schedule"))

    def delete(self, ref: str) -> None:
        """Delete a schedule. Its earlier triggers remain."""
        self._wire.send("DELETE", _path(self.find_id(ref)))


def _path(id_: str) -> str:
    return f"/software_schedules/{segment(id_)}"
