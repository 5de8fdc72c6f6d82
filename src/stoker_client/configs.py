"""Software configs over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.errors import NotFound
from stoker_client.parts import found, part, segment
from stoker_client.shapes import Config

if TYPE_CHECKING:
    from stoker_client.wire import Wire

# The input that every derived config has and no source config needs: it tells whose copy it is.
DERIVED = "deploy_server_id"


class Configs:
    """Calls on software configs."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Config]:
        """All configs of the project, newest first, without their contents."""
        return cast(list[Config], part(self._wire.get("/software_configs"), "software_configs"))

    def show(self, id_: str) -> Config:
        """One config with its contents."""
        return cast(Config, part(self._wire.get(f"/software_configs/{segment(id_)}"), "software_config"))

    def find(self, ref: str) -> Config:
        """A config by its id, or by its name as long as only one has it."""
        return found(self.show, self.all, ref, "config")

    def create(self, body: Mapping[str, Any]) -> Config:
        """Make a config."""
        return cast(Config, part(self._wire.send("POST", "/software_configs", body), "software_config"))

    def delete(self, id_: str) -> None:
        """Delete a config that no deployment uses."""
        self._wire.send("DELETE", f"/software_configs/{segment(id_)}")

    def delete_derived(self, id_: str) -> None:
        """Delete the config that a deleted deployment leaves behind: only if it is a derived one, and still there."""
        try:
            if any(entry.get("name") == DERIVED for entry in self.show(id_).get("inputs") or []):
                self.delete(id_)
        except NotFound:
            return
