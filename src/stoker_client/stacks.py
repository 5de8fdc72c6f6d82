"""Stacks over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.shapes import Change, Event, Output, Resource, Stack

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Stacks:
    """Calls on stacks. ``ref`` is a name, an id, or ``name/id``; the service redirects the first two."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Stack]:
        """All stacks of the project, newest first."""
        return cast(list[Stack], part(self._wire.get("/stacks"), "stacks"))

    def show(self, ref: str, *, outputs: bool = True, patient: bool = False) -> Stack:
        """One stack. Without ``outputs`` the service need not work them out."""
        query = None if outputs else {"resolve_outputs": "false"}
        return cast(Stack, part(self._wire.get(_path(ref), query, patient=patient), "stack"))

    def canonical(self, ref: str) -> str:
        """``name/id``: the form that every call below a stack takes, and that means one stack for ever."""
        stack = self.show(ref, outputs=False)
        return f"{stack['stack_name']}/{stack['id']}"

    def create(self, body: Mapping[str, Any]) -> str:
        """Start a stack; answers its ``name/id``."""
        made = part(self._wire.send("POST", "/stacks", body), "stack")
        return f"{body['stack_name']}/{part(made, 'id')}"

    def update(self, ref: str, body: Mapping[str, Any], *, existing: bool) -> None:
        """Change a stack: wholly, or with ``existing`` only in what ``body`` names."""
        self._wire.send("PATCH" if existing else "PUT", _path(ref), body)

    def delete(self, ref: str) -> None:
        """Start the end of a stack."""
        self._wire.send("DELETE", _path(ref))

    def resources(self, ref: str, *, patient: bool = False) -> list[Resource]:
        """The resources of a stack."""
        answer = self._wire.get(f"{_path(ref)}/resources", patient=patient)
        return cast(list[Resource], part(answer, "resources"))

    def events(self, ref: str, *, after: str | None = None, patient: bool = False) -> list[Event]:
        """What happened, oldest first; with ``after``, only what came after the event of that id."""
        query = {"sort_dir": "asc", "marker": after}
        answer = self._wire.get(f"{_path(ref)}/events", query, patient=patient)
        return cast(list[Event], part(answer, "events"))

    def act(self, ref: str, action: str) -> None:
        """Start ``suspend``, ``resume``, ``check``, ``cancel_update`` or ``cancel_without_rollback``."""
        self._wire.send("POST", f"{_path(self.canonical(ref))}/actions", {action: None})

    def preview(self, body: Mapping[str, Any]) -> Stack:
        """What a stack would be; nothing is made."""
        return cast(Stack, part(self._wire.send("POST", "/stacks/preview", body), "stack"))

    def preview_update(self, ref: str, body: Mapping[str, Any], *, existing: bool) -> dict[str, list[Change]]:
        """What an update would do, by ``unchanged``, ``updated``, ``replaced``, ``added`` and ``deleted``."""
        verb = "PATCH" if existing else "PUT"
        answer = self._wire.send(verb, f"{_path(self.canonical(ref))}/preview", body)
        return cast(dict[str, list[Change]], part(answer, "resource_changes"))

    def export(self, ref: str) -> dict[str, Any]:
        """All that it takes to adopt the stack."""
        return cast(dict[str, Any], self._wire.get(f"{_path(self.canonical(ref))}/export"))

    def abandon(self, ref: str) -> dict[str, Any]:
        """The same, and the stack is forgotten; what it made stays."""
        return cast(dict[str, Any], self._wire.send("DELETE", f"{_path(self.canonical(ref))}/abandon"))

    def snapshots(self, ref: str) -> list[dict[str, Any]]:
        """The snapshots of a stack, oldest first."""
        answer = self._wire.get(f"{_path(self.canonical(ref))}/snapshots")
        return cast(list[dict[str, Any]], part(answer, "snapshots"))

    def take_snapshot(self, ref: str, name: str | None) -> dict[str, Any]:
        """Keep what the stack is."""
        answer = self._wire.send("POST", f"{_path(self.canonical(ref))}/snapshots", {"name": name})
        return cast(dict[str, Any], answer)

    def snapshot(self, ref: str, id_: str) -> dict[str, Any]:
        answer = self._wire.get(f"{_path(self.canonical(ref))}/snapshots/{segment(id_)}")
        return cast(dict[str, Any], part(answer, "snapshot"))

    def delete_snapshot(self, ref: str, id_: str) -> None:
        self._wire.send("DELETE", f"{_path(self.canonical(ref))}/snapshots/{segment(id_)}")

    def restore(self, ref: str, id_: str) -> None:
        """Lead the stack back to what it was."""
        self._wire.send("POST", f"{_path(self.canonical(ref))}/snapshots/{segment(id_)}/restore", {})

    def output(self, ref: str, key: str) -> Output:
        """One output, worked out now."""
        answer = self._wire.get(f"{_path(self.canonical(ref))}/outputs/{segment(key)}")
        return cast(Output, part(answer, "output"))

    def template(self, ref: str) -> Any:
        """The template that the stack was made from."""
        return self._wire.get(f"{_path(ref)}/template")


def _path(ref: str) -> str:
    name, slash, id_ = ref.partition("/")
    return f"/stacks/{segment(name)}/{segment(id_)}" if slash else f"/stacks/{segment(name)}"
