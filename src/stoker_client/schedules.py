"""Schedules over HTTP: triggers that come by themselves. Stoker's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import found, part, segment
from stoker_client.shapes import Schedule

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Schedules:
    """Calls on schedules. ``ref`` is an id, or a name as long as only one has it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Schedule]:
        """All schedules of the project."""
        return cast(list[Schedule], part(self._wire.get("/software_schedules"), "software_schedules"))

    def show(self, id_: str) -> Schedule:
        """One schedule."""
        return cast(Schedule, part(self._wire.get(_path(id_)), "software_schedule"))

    def find(self, ref: str) -> Schedule:
        """The same, by its name too."""
        return found(self.show, self.all, ref, "schedule")

    def create(self, body: Mapping[str, Any]) -> Schedule:
        """Make one."""
        answer = self._wire.send("POST", "/software_schedules", {"software_schedule": body})
        return cast(Schedule, part(answer, "software_schedule"))

    def change(self, ref: str, changes: Mapping[str, Any]) -> Schedule:
        """Change what is named."""
        path = _path(self.find(ref)["id"])
        return cast(Schedule, part(self._wire.send("PATCH", path, {"software_schedule": changes}), "software_schedule"))

    def delete(self, ref: str) -> None:
        """No trigger comes of it any more; those that came stay."""
        self._wire.send("DELETE", _path(self.find(ref)["id"]))


def _path(id_: str) -> str:
    return f"/software_schedules/{segment(id_)}"
