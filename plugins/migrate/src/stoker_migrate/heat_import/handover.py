"""
Changes at the other Heat after an import: agents change to Stoker, and Stoker alone owns the objects.

Agents follow the metadata that they read from the other Heat. The order makes an interrupted import safe to repeat:
Stoker has adopted all objects and all agents have changed before the other Heat forgets them by the abandonment of the
source stack, and nothing depends on the source stack afterwards.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stoker_client.collection import part, segment
from stoker_client.errors import BadInput, NotFound, Refused, TimedOut
from stoker_migrate.heat_import.source_stack import (
    SERVER_TYPES,
    SourceStack,
    object_ids,
    poll,
    read_resources,
    read_stack,
    walk,
)

if TYPE_CHECKING:
    from stoker_client.client import Client
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
    def stack(self) -> str:
        """The path of the resource that represents the server's stack; empty for the outermost stack."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name of the resource in its stack."""
        return self.path.rpartition("/")[2]

    def ini(self) -> str:
        """Return the configuration as the file ``os-collect-config.conf``."""
        sections = {name: value for name, value in self.config.items() if isinstance(value, Mapping)}
        collectors = [str(name) for name in self.config.get("collectors") or sections]
        lines = ["[DEFAULT]", f"collectors={','.join(collectors)}"]
        for name, section in sections.items():
            settings = [f"{key}={value}" for key, value in section.items() if value is not None]
            lines += ["", f"[{name}]", *settings]
        return "\n".join(lines) + "\n"


def read_configs(client: Client, ref: str) -> list[ServerConfig]:
    """Return the configurations of all servers of the imported stack, from Stoker. ``ref``: its ``name/id``."""
    configs = []
    for name, resource in walk(read_resources(client.wire, f"/stacks/{ref}")):
        if resource.type in SERVER_TYPES and resource.physical_id:
            config = part(client.wire.get(f"{resource.path}/metadata"), "metadata").get(SECTION) or {}
            configs.append(ServerConfig(name, resource.physical_id, config))
    return configs


def repoint(wire: Wire, source: SourceStack, configs: list[ServerConfig]) -> None:
    """
    Put the configurations into the metadata of the servers at the other Heat.

    Agents that read the metadata there follow the new configuration. Updates the stacks with these servers, one after
    the other: a nested stack is updated directly, because its siblings may share its template. No other resource
    changes, and a stack whose servers have their configurations already is not updated.

    Raises BadInput if an update fails.
    """
    paths = {path: resource.nested for path, resource in walk(source.resources)}
    for above in dict.fromkeys(config.stack for config in configs):
        stack_path = paths[above] if above else source.path
        outdated = [item for item in configs if item.stack == above and _is_outdated(wire, stack_path, item)]
        if outdated:
            _put_configs(wire, stack_path, outdated)


def _is_outdated(wire: Wire, stack_path: str, config: ServerConfig) -> bool:
    present = part(wire.get(f"{stack_path}/resources/{segment(config.name)}/metadata"), "metadata").get(SECTION)
    return bool(present != dict(config.config))


def _put_configs(wire: Wire, stack_path: str, configs: list[ServerConfig]) -> None:
    template: Any = copy.deepcopy(wire.get(f"{stack_path}/template"))
    resources = template["resources" if "resources" in template else "Resources"]
    for config in configs:
        definition = resources[config.name]
        key = "Metadata" if "Type" in definition else "metadata"
        metadata = definition.get(key) if isinstance(definition.get(key), dict) else {}
        definition[key] = {**metadata, SECTION: dict(config.config)}
    files = wire.get(f"{stack_path}/files") or {}
    wire.send("PATCH", stack_path, {"template": template, "files": files, "environment": {}})
    stack = poll(lambda: _ended(wire, stack_path))
    if stack["stack_status"] != "UPDATE_COMPLETE":  # it may have been rolled back
        reason = stack["stack_status_reason"]
        raise BadInput(f"the update of the stack {stack['stack_name']} at the other Heat failed: {reason}")


def _ended(wire: Wire, stack_path: str) -> Mapping[str, Any] | None:
    stack: Mapping[str, Any] = part(wire.get(stack_path), "stack")
    return None if stack["stack_status"].endswith("_IN_PROGRESS") else stack


def find_refusals(wire: Wire) -> list[str]:
    """Return the reason why the other Heat abandons no stacks, if it has one. Asks for a stack that does not exist."""
    try:
        wire.send("DELETE", f"/stacks/none/{uuid4()}/abandon")
    except NotFound:
        return []
    except Refused as error:
        remedy = "set enable_stack_abandon = true in its heat.conf, or omit --abandon"
        return [f"the other Heat does not abandon stacks ({error}): {remedy}"]
    return []


def await_agents(client: Client, source: SourceStack, seconds: float) -> None:
    """
    Wait until Stoker has seen the agent of each server with deployments, for at most ``seconds``; 0: do not wait.

    Raises TimedOut with the servers whose agents still use the other Heat.
    """
    ids = {str(deployment["server_id"]) for deployment in source.deployments} if seconds else set()

    def unseen() -> list[str]:
        return sorted(id_ for id_ in ids if not client.servers.show(id_).get("last_seen"))

    try:
        poll(lambda: None if unseen() else True, seconds)
    except TimedOut:
        raise TimedOut(
            f"the stack was not abandoned: the agents of these servers have not changed to Stoker within {seconds:g}"
            f" seconds: {', '.join(unseen())}. Repeat the command when they have, or with --agent-timeout 0 if the"
            " servers have no agents"
        ) from None


def abandon(wire: Wire, source: SourceStack) -> None:
    """
    Remove the source stack without its resources, and wait until it is gone.

    Raises BadInput if the stack's objects have changed since it was read, or if the removal fails.
    """
    name = source.stack["stack_name"]
    present = read_stack(wire, str(source.stack["id"]))
    if object_ids(present.resources) != object_ids(source.resources) or present.problems:
        raise BadInput(f"the stack {name} has changed at the other Heat since its import: it was not abandoned")
    wire.send("DELETE", f"{source.path}/abandon")
    final = poll(lambda: _final(wire, source.path))
    if final["stack_status"] != "DELETE_COMPLETE":
        raise BadInput(f"the other Heat could not abandon the stack {name}: {final['stack_status_reason']}")


def _final(wire: Wire, path: str) -> Mapping[str, Any] | None:
    try:
        stack: Mapping[str, Any] = part(wire.get(path), "stack")
    except NotFound:
        return {"stack_status": "DELETE_COMPLETE"}
    return stack if stack["stack_status"] in ("DELETE_COMPLETE", "DELETE_FAILED") else None
