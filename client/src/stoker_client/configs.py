"""The API of software configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker_client.collection import Collection
from stoker_client.errors import NotFound
from stoker_client.shapes import Config

if TYPE_CHECKING:
    from stoker_client.wire import Wire

# An input that every derived config has and no source config needs: the server of the copy.
DERIVED = "deploy_server_id"


class Configs(Collection[Config]):
    """Software configs. Names never match derived configs."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_configs", "config", key="software_config")

    def all(self, *, derived: bool = False, **_: object) -> list[Config]:
        """
        Return the configs of the project without their contents, newest first.

        ``derived`` includes derived configs, which have the names of their sources.
        """
        return super().all(derived="true" if derived else "false")

    def delete_derived(self, id_: str) -> None:
        """Delete a derived config after its deployment was deleted. Source configs and missing ids are ignored."""
        try:
            if any(entry.get("name") == DERIVED for entry in self.show(id_).get("inputs") or []):
                self.delete(id_)
        except NotFound:
            return
