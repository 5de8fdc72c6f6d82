"""Servers over HTTP: Stoker's own addition to Heat's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stoker_client.parts import part, segment
from stoker_client.shapes import Enrolled, Server

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Servers:
    """Calls on servers. ``ref`` is a name or an id."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Server]:
        """All servers of the project."""
        return cast(list[Server], part(self._wire.get("/servers"), "servers"))

    def show(self, ref: str) -> Server:
        """One server."""
        return cast(Server, part(self._wire.get(f"/servers/{segment(ref)}"), "server"))

    def enroll(self, name: str) -> Enrolled:
        """Invite a server: the answer holds the command to run on it."""
        answer = self._wire.send("POST", "/servers", {"name": name})
        part(part(answer, "enrolment"), "command")
        return cast(Enrolled, answer)

    def delete(self, ref: str) -> None:
        """Forget a server; its agent's key is worth nothing from then on."""
        self._wire.send("DELETE", f"/servers/{segment(self.show(ref)['id'])}")
