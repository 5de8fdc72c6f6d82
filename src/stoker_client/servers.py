"""Servers over HTTP: Stoker's own addition to Heat's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.shapes import Enrolled, Server

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Servers:
    """Calls on servers. ``ref`` is a name or an id."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, labels: Mapping[str, str] | None = None) -> list[Server]:
        """All servers of the project, or those that have all of ``labels``."""
        wanted = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        return cast(list[Server], part(self._wire.get("/servers", {"labels": wanted or None}), "servers"))

    def show(self, ref: str) -> Server:
        """One server."""
        return cast(Server, part(self._wire.get(f"/servers/{segment(ref)}"), "server"))

    def enroll(self, name: str) -> Enrolled:
        """Invite a server: the answer holds the command to run on it."""
        answer = self._wire.send("POST", "/servers", {"name": name})
        part(part(answer, "enrolment"), "command")
        return cast(Enrolled, answer)

    def label(self, ref: str, labels: Mapping[str, str | None]) -> Server:
        """Set labels, or take those away whose value is None."""
        return self._changed(ref, {"labels": dict(labels)})

    def set_policy(self, ref: str, policy: Any) -> Server:
        """Say who may deploy what to it, and when; None leaves it to the site."""
        return self._changed(ref, {"policy": policy})

    def _changed(self, ref: str, changes: Mapping[str, Any]) -> Server:
        return cast(Server, part(self._wire.send("PATCH", f"/servers/{segment(ref)}", changes), "server"))

    def delete(self, ref: str) -> None:
        """Forget a server; its agent's key is worth nothing from then on."""
        self._wire.send("DELETE", f"/servers/{segment(self.show(ref)['id'])}")
