"""The triggers API, a Stoker extension: runs an action or a config on servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from stoker_client.events import follow
from stoker_client.pagination import read_pages
from stoker_client.parts import part, segment
from stoker_client.references import choose, is_id
from stoker_client.shapes import Trigger
from stoker_client.sse import Event

if TYPE_CHECKING:
    from stoker_client.wire import Wire

RUNNING = "IN_PROGRESS"
STATUSES = (RUNNING, "COMPLETE", "FAILED", "CANCELLED")
# columns of lists
COLUMNS = ("id", "name", "action", "status", "total", "complete", "failed", "changed", "requested_by", "creation_time")


def body(**fields: Any) -> dict[str, Any]:
    """Return the body of a trigger request without the arguments that are unset."""
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


class Triggers:
    """Calls to the triggers API."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, *, status: str | None = None, stack: str | None = None, limit: int | None = None) -> list[Trigger]:
        """Return the triggers of the project, newest first."""
        query = {"status": status, "stack": stack}
        return cast(list[Trigger], read_pages(self._wire, "/software_triggers", "software_triggers", query, limit))

    def find_id(self, ref: str) -> str:
        """
        Return the id of a trigger by its name or a prefix of its id. A name means the last retry of its trigger.

        Raises NotFound or Ambiguous.
        """
        if is_id(ref):
            return ref
        listed = self.all()
        named = _without_retried([trigger for trigger in listed if trigger.get("name") == ref])
        return choose(named or listed, ref, "trigger")["id"]

    def show(self, id_: str, *, patient: bool = False) -> Trigger:
        """Return one trigger with all of its servers under ``targets``. ``patient`` waits for a restart."""
        trigger = cast(Trigger, part(self._wire.get(_path(id_), patient=patient), "software_trigger"))
        targets = trigger.get("targets") or []
        while targets and len(targets) < trigger["total"]:  # the answer contains the first ones
            query = {"marker": targets[-1]["position"]}
            page = part(self._wire.get(f"{_path(id_)}/targets", query, patient=patient), "targets")
            if not page:
                break
            targets += page
        return trigger

    def create(self, body: Mapping[str, Any]) -> Trigger:
        """Create a trigger, which begins at once."""
        return self._send("POST", "/software_triggers", body)

    def cancel(self, id_: str, *, force: bool = False) -> Trigger:
        """
        Cancel a trigger: pending runs never begin, active ones are stopped.

        With ``force``, runs end without a confirmation from their agents.
        """
        return self._send("POST", f"{_path(id_)}/cancel", {"force": True} if force else {})

    def retry(self, id_: str, *, only_failed: bool = True) -> Trigger:
        """Create the same trigger again, for the servers on which it failed or was cancelled, or for all."""
        return self._send("POST", f"{_path(id_)}/retry", {"only_failed": only_failed})

    def delete(self, id_: str) -> None:
        """Delete an ended trigger with its deployments and their logs."""
        self._wire.send("DELETE", _path(id_))

    def events(self, id_: str) -> Iterator[Event]:
        """Yield events until the trigger ends: ``target``, ``log``, ``trigger``, and finally ``end``."""
        return follow(self._wire, f"{_path(id_)}/events")

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Trigger:
        return cast(Trigger, part(self._wire.send(method, path, body), "software_trigger"))


def _without_retried(triggers: Sequence[Trigger]) -> list[Trigger]:
    """Return the newest trigger of each chain of retries. ``triggers`` have the same name, and the newest is first."""
    earlier = {trigger["id"]: (trigger.get("source") or {}).get("retry_of") for trigger in triggers}

    def first(id_: str) -> str:
        while following := earlier.get(id_):
            id_ = following
        return id_

    newest: dict[str, Trigger] = {}
    for trigger in triggers:
        newest.setdefault(first(trigger["id"]), trigger)
    return list(newest.values())


def _path(id_: str) -> str:
    return f"/software_triggers/{segment(id_)}"
