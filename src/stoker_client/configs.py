"""The API of software configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.errors import NotFound
from stoker_client.parts import part, segment
from stoker_client.references import choose, is_id
from stoker_client.shapes import Config

if TYPE_CHECKING:
    from stoker_client.wire import Wire

# An input that every derived config has and no source config needs: the server of the copy.
DERIVED = "deploy_server_id"


class Configs:
    """Calls to the API of software configs."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, *, derived: bool = False) -> list[Config]:
        """
        Return the configs of the project without their contents, newest first.

        ``derived`` includes derived configs, which have the names of their sources.
        """
        path = f"/software_configs?derived={'true' if derived else 'false'}"
        return cast(list[Config], part(self._wire.get(path), "software_configs"))

    def show(self, id_: str) -> Config:
        """Return one config with its contents."""
        return cast(Config, part(self._wire.get(f"/software_configs/{segment(id_)}"), "software_config"))

    def find(self, ref: str) -> Config:
        """Return a config by its id, its name or a prefix of its id. Names never match derived configs."""
        return self.show(self.find_id(ref))

    def find_id(self, ref: str) -> str:
        """Return the id of a config. Raises NotFound or Ambiguous."""
        return ref if is_id(ref) else choose(self.all(), ref, "config")["id"]

    def create(self, body: Mapping[str, Any]) -> Config:
        """Create a config."""
        return cast(Config, part(self._wire.send("POST", "/software_configs", body), "software_config"))

    def delete(self, id_: str) -> None:
        """Delete a config. The service refuses while a deployment uses it."""
        self._wire.send("DELETE", f"/software_configs/{segment(id_)}")

    def delete_derived(self, id_: str) -> None:
        """Delete a derived config after its deployment was deleted. Source configs and missing ids are ignored."""
        try:
            if any(entry.get("name") == DERIVED for entry in self.show(id_).get("inputs") or []):
                self.delete(id_)
        except NotFound:
            return
