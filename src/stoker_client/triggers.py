"""Triggers over HTTP: an action or a config, run now, on as many servers as it takes. Stoker's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.events import following
from stoker_client.paging import paged
from stoker_client.parts import part, segment
from stoker_client.shapes import Trigger
from stoker_client.sse import Event

if TYPE_CHECKING:
    from stoker_client.wire import Wire

RUNNING = "IN_PROGRESS"
STATUSES = (RUNNING, "COMPLETE", "FAILED", "CANCELLED")
COLUMNS = ("id", "name", "action", "status", "total", "complete", "failed", "asked_by", "creation_time")  # of lists


def body(**said: Any) -> dict[str, Any]:
    """The request for a trigger: of all that may be said, what was said."""
    return {name: value for name, value in said.items() if value not in (None, [], {})}


class Triggers:
    """Calls on triggers."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, *, status: str | None = None, stack: str | None = None, limit: int | None = None) -> list[Trigger]:
        """The triggers of the project, newest first."""
        query = {"status": status, "stack": stack}
        return cast(list[Trigger], paged(self._wire, "/software_triggers", "software_triggers", query, limit))

    def show(self, id_: str, *, patient: bool = False) -> Trigger:
        """One trigger, with its servers under ``targets``."""
        return cast(Trigger, part(self._wire.get(_path(id_), patient=patient), "software_trigger"))

    def create(self, body: Mapping[str, Any]) -> Trigger:
        """Run something: it begins at once."""
        return self._sent("POST", "/software_triggers", body)

    def cancel(self, id_: str, *, force: bool = False) -> Trigger:
        """End it: what has not begun never will, what runs is told to stop; with ``force``, that is not waited for."""
        return self._sent("POST", f"{_path(id_)}/cancel", {"force": True} if force else {})

    def retry(self, id_: str, *, only_failed: bool = True) -> Trigger:
        """A new trigger of the same on the servers where it failed or was cancelled, or on all."""
        return self._sent("POST", f"{_path(id_)}/retry", {"only_failed": only_failed})

    def delete(self, id_: str) -> None:
        """Forget a trigger that is over, with its deployments and their logs."""
        self._wire.send("DELETE", _path(id_))

    def events(self, id_: str) -> Iterator[Event]:
        """What happens to it until it is over: ``target``, ``log``, ``trigger``, and at last ``end``."""
        return following(self._wire, f"{_path(id_)}/events")

    def _sent(self, method: str, path: str, body: Mapping[str, Any]) -> Trigger:
        return cast(Trigger, part(self._wire.send(method, path, body), "software_trigger"))


def _path(id_: str) -> str:
    return f"/software_triggers/{segment(id_)}"
