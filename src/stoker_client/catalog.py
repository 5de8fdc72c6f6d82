"""The catalog API, a Stoker extension: typed, versioned configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Catalog:
    """Calls to the catalog API."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[dict[str, Any]]:
        """Return the name, version, description and origin of each entry."""
        return cast(list[dict[str, Any]], part(self._wire.get("/catalog"), "entries"))

    def show(self, name: str, version: int) -> dict[str, Any]:
        """Return one entry with its text."""
        return cast(dict[str, Any], part(self._wire.get(_path(name, version)), "entry"))

    def add(self, text: str, *, public: bool = False) -> dict[str, Any]:
        """Add an entry from its text, for the project or for every project."""
        body = {"text": text, "public": public}
        return cast(dict[str, Any], part(self._wire.send("POST", "/catalog", body), "entry"))

    def delete(self, name: str, version: int) -> None:
        """Delete an entry. Stacks that use it keep their copy."""
        self._wire.send("DELETE", _path(name, version))


def _path(name: str, version: int) -> str:
    return f"/catalog/{segment(name)}/{version}"
