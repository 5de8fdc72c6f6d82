"""The triggers API, a Stoker extension: runs an action or a config on servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stoker_client.collection import Collection, part
from stoker_client.references import choose, is_id
from stoker_client.shapes import Trigger
from stoker_client.sse import Event, follow

if TYPE_CHECKING:
    from stoker_client.wire import Wire

RUNNING = "IN_PROGRESS"
STATUSES = (RUNNING, "COMPLETE", "FAILED", "CANCELLED")
# columns of lists
COLUMNS = ("id", "name", "action", "status", "total", "complete", "failed", "changed", "requested_by", "creation_time")


def body(**fields: Any) -> dict[str, Any]:
    """Return the body of a trigger request without the arguments that are unset."""
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


class Triggers(Collection[Trigger]):
    """Triggers, newest first. A name means the last retry of its trigger."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_triggers", "trigger", key="software_trigger", has_pages=True)

    def find_id(self, ref: str) -> str:
        """Return the id of a trigger. Raises NotFound or Ambiguous."""
        if is_id(ref):
            return ref
        listed = self.all()
        named = _without_retried([trigger for trigger in listed if trigger.get("name") == ref])
        return choose(named or listed, ref, "trigger")["id"]

    def show(self, ref: str, *, patient: bool = False) -> Trigger:
        """Return one trigger with all of its servers under ``targets``. ``patient`` waits for a restart."""
        path = self._path_of(ref)
        trigger = self._one(self._wire.get(path, patient=patient))
        targets = trigger.get("targets") or []
        while targets and len(targets) < trigger["total"]:  # the answer contains the first ones
            query = {"marker": targets[-1]["position"]}
            page = part(self._wire.get(f"{path}/targets", query, patient=patient), "targets")
            if not page:
                break
            targets += page
        return trigger

    def cancel(self, id_: str, *, force: bool = False) -> Trigger:
        """
        Cancel a trigger: pending runs never begin, active ones are stopped.

        With ``force``, runs end without a confirmation from their agents.
        """
        return self._send("POST", f"{self._path_of(id_)}/cancel", {"force": True} if force else {})

    def retry(self, id_: str, *, only_failed: bool = True) -> Trigger:
        """Create the same trigger again, for the servers on which it failed or was cancelled, or for all."""
        return self._send("POST", f"{self._path_of(id_)}/retry", {"only_failed": only_failed})

    def events(self, id_: str) -> Iterator[Event]:
        """Yield events until the trigger ends: ``target``, ``log``, ``trigger``, and finally ``end``."""
        return follow(self._wire, f"{self._path_of(id_)}/events")


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
