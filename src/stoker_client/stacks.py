"""Stacks over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.shapes import Event, Output, Resource, Stack

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
