"""The relays API, a Stoker extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.references import choose

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Relays:
    """Calls to the relays API. ``ref`` is a name, an id, or its beginning."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[dict[str, Any]]:
        """Return the relays of the project, without their keys."""
        return cast(list[dict[str, Any]], part(self._wire.get("/relays"), "relays"))

    def create(self, name: str, url: str, ca: str | None = None) -> dict[str, Any]:
        """
        Create a relay and return it, with its ``key``.

        ``url`` is where the site's agents reach the relay; ``ca`` has the certificates, in PEM, that verify it.
        """
        body = {"name": name, "url": url, "ca": ca}
        return cast(dict[str, Any], part(self._wire.send("POST", "/relays", body), "relay"))

    def delete(self, ref: str) -> None:
        """Delete a relay and revoke its key."""
        id_ = choose(self.all(), ref, "relay")["id"]
        self._wire.send("DELETE", f"/relays/{segment(id_)}")
