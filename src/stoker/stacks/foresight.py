"""
Deployments that a server's policy would refuse, as far as the template tells: those to servers that are known by their
ids, and those to servers of the same template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.deployments import policy
from stoker.deployments.gate import Gate
from stoker.deployments.policy import Target, Tree
from stoker.hot import UNKNOWN, Definition, weigh
from stoker.model.config import UNGROUPED
from stoker.model.errors import DeploymentRefused, StackValidationFailed
from stoker.resources.base import Properties
from stoker.resources.running import COMPONENT
from stoker.stacks import kinds
from stoker.store.tx import Tx

#: Of these, one may come to stand for a server that is enrolled.
STANDS_FOR = "OS::Heat::DeployedServer"


@dataclass(frozen=True, slots=True)
class Deploys:
    """One deployment of a template to a server that is known."""

    #: The resource of the outermost template.
    top: str
    place: str
    server_id: str
    #: Of its config; None: not known yet.
    group: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A resource while it is checked: its final type, its definition, its properties as far as they are known."""

    type: str
    definition: Definition
    properties: Properties


def deploys(within: str, top: str | None, resources: Mapping[str, Seen]) -> Iterator[Deploys]:
    """
    What a template deploys to servers that it names by their ids. Raises StackValidationFailed for what it deploys to
    servers of its own against their policies.
    """
    for name, each in resources.items():
        if each.type not in kinds.DEPLOYMENTS | kinds.GROUPS or each.definition.external_id is not None:
            continue
        place, group = f"resources.{name}", _group(each, resources)
        actions = each.properties.get("actions")
        if group != COMPONENT and isinstance(actions, list) and "CREATE" not in actions:
            continue  # nothing runs before its server's policy may be another
        for key, id, written in _servers(each):
            if isinstance(id, str) and id:
                yield Deploys(top or name, f"{within}{place}.properties.{key}", id, group)
            else:
                _check_own(place, written, group, resources)


def refuse(
    tx: Tx, gate: Gate, found: Collection[Deploys], *, stack: Tree, project_id: str, who: str, stands_for: bool
) -> None:
    """Raises DeploymentRefused that names the place. ``stands_for``: a resource may come to stand for such a server."""
    asked: set[tuple[str, str | None]] = set()
    for each in found:
        if (each.server_id, each.group) in asked:
            continue
        asked.add((each.server_id, each.group))
        try:
            gate.foresee(
                tx,
                server_id=each.server_id,
                project_id=project_id,
                stack=stack,
                group=each.group,
                who=who,
                standing=stands_for,
            )
        except DeploymentRefused as refused:
            raise DeploymentRefused(f"{each.place}: {refused.message}", refused.decision) from None


def _servers(each: Seen) -> Iterator[tuple[str, Any, Any]]:
    """(property, the server's id as far as it is known, as it is written)"""
    if each.type in kinds.DEPLOYMENTS:
        yield "server", each.properties.get("server"), each.definition.properties.get("server")
        return
    known, written = each.properties.get("servers"), each.definition.properties.get("servers")
    if not isinstance(known, Mapping):
        return
    for name, id in known.items():
        yield f"servers.{name}", id, written.get(name) if isinstance(written, Mapping) else None


def _group(each: Seen, resources: Mapping[str, Seen]) -> str | None:
    config = resources.get(_referred(each.definition.properties.get("config")) or "")
    if config is None:
        return None
    if config.type in kinds.COMPONENTS:
        return COMPONENT
    if config.type not in kinds.CONFIGS:
        return None
    said = config.properties.get("group")
    return None if said is UNKNOWN else said or UNGROUPED


def _check_own(place: str, written: Any, group: str | None, resources: Mapping[str, Seen]) -> None:
    """The stack is its own server's, so that all that a policy can say against it is the group."""
    name = _referred(written)
    server = resources.get(name or "")
    if name is None or group is None or server is None or server.type not in kinds.SERVERS:
        return
    said = server.properties.get(policy.NAME)
    if said is None or weigh(said)[1]:
        return
    held = policy.Policy(allow=policy.PROJECT, groups=policy.read(said).groups)
    target = Target(id=name, name=name, project_id="")
    why = policy.decide(held, target, project_id="", stack=None, group=group)
    if why is not None:
        raise StackValidationFailed(f"{place}: {why}")


def _referred(written: Any) -> str | None:
    """The resource that ``get_resource`` names."""
    if not isinstance(written, Mapping) or len(written) != 1:
        return None
    said = written.get("get_resource")
    return said if isinstance(said, str) else None
