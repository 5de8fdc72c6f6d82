"""Points agents at Stoker: through the metadata that they read from the other Heat."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker_client.heat_import.source_stack import SERVER_TYPES, SourceStack
from stoker_client.parts import part, segment

if TYPE_CHECKING:
    from stoker_client.wire import Wire

#: The section of a server's metadata with the configuration of its agent.
SECTION = "os-collect-config"


@dataclass(frozen=True)
class ServerConfig:
    """The configuration that points a server's agent at Stoker."""

    #: Path of the resource, such as ``group/0``.
    path: str
    server_id: str
    config: Mapping[str, Any]

    @property
    def is_nested(self) -> bool:
        """Whether the resource belongs to a nested stack, whose template the update of a stack does not contain."""
        return "/" in self.path

    def ini(self) -> str:
        """Return the configuration as the file ``os-collect-config.conf``."""
        sections = {name: value for name, value in self.config.items() if isinstance(value, Mapping)}
        collectors = [str(name) for name in self.config.get("collectors") or sections]
        lines = ["[DEFAULT]", f"collectors={','.join(collectors)}"]
        for name, section in sections.items():
            settings = [f"{key}={value}" for key, value in section.items() if value is not None]
            lines += ["", f"[{name}]", *settings]
        return "\n".join(lines) + "\n"


def read_configs(wire: Wire, ref: str) -> list[ServerConfig]:
    """Return the configurations of all servers of the imported stack, from Stoker. ``ref``: its ``name/id``."""
    return _read_configs(wire, f"/stacks/{'/'.join(map(segment, ref.split('/')))}", "")


def _read_configs(wire: Wire, path: str, prefix: str) -> list[ServerConfig]:
    configs = []
    for entry in part(wire.get(f"{path}/resources"), "resources"):
        name = prefix + entry["resource_name"]
        nested = [link["href"] for link in entry.get("links", ()) if link.get("rel") == "nested"]
        if nested:
            configs += _read_configs(wire, "/stacks/" + nested[0].partition("/stacks/")[2], f"{name}/")
        elif entry["resource_type"] in SERVER_TYPES and entry.get("physical_resource_id"):
            answer = wire.get(f"{path}/resources/{segment(entry['resource_name'])}/metadata")
            config = part(answer, "metadata").get(SECTION) or {}
            configs.append(ServerConfig(name, entry["physical_resource_id"], config))
    return configs


def repoint(wire: Wire, source: SourceStack, configs: list[ServerConfig]) -> list[ServerConfig]:
    """
    Update the stack at the other Heat: put the configurations into the metadata of its servers.

    Returns the servers of nested stacks, which the update cannot reach. Agents that read the metadata there follow the
    new configuration. The stack's other resources do not change.
    """
    template: Any = copy.deepcopy(source.template)
    reached = [config for config in configs if not config.is_nested]
    for config in reached:
        definition = template["resources"][config.path]
        metadata = definition.get("metadata") if isinstance(definition.get("metadata"), dict) else {}
        definition["metadata"] = {**metadata, SECTION: dict(config.config)}
    if reached:
        path = f"/stacks/{segment(source.stack['stack_name'])}/{segment(source.stack['id'])}"
        wire.send("PATCH", path, {"template": template, "files": dict(source.files), "environment": {}})
    return [config for config in configs if config.is_nested]


def abandon(wire: Wire, source: SourceStack) -> None:
    """Remove the stack at the other Heat without its resources. Raises Refused if that Heat does not permit it."""
    path = f"/stacks/{segment(source.stack['stack_name'])}/{segment(source.stack['id'])}"
    wire.send("DELETE", f"{path}/abandon")
