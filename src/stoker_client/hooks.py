"""The API of stored hooks, a Stoker extension."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Hooks:
    """Calls to the API of stored hooks."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[dict[str, Any]]:
        """Return the hooks that the project may use, without their contents."""
        return cast(list[dict[str, Any]], part(self._wire.get("/hooks"), "hooks"))

    def show(self, name: str, version: int) -> dict[str, Any]:
        """Return a version of a hook. Its ``content`` is base64."""
        return cast(dict[str, Any], part(self._wire.get(_path(name, version)), "hook"))

    def add(self, name: str, content: bytes, *, description: str = "", public: bool = False) -> dict[str, Any]:
        """Store the next version of a hook, for the project or for every project."""
        text = base64.b64encode(content).decode()
        body = {"name": name, "content": text, "description": description, "public": public}
        return cast(dict[str, Any], part(self._wire.send("POST", "/hooks", body), "hook"))

    def delete(self, name: str, version: int) -> None:
        """Delete a version of a hook."""
        self._wire.send("DELETE", _path(name, version))


def _path(name: str, version: int) -> str:
    return f"/hooks/{segment(name)}/{version}"
