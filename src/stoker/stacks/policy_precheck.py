"""
Checks deployments of a template against servers' policies before the stack is created or updated.

The check covers servers that the template names by id and servers of the same template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot import UNKNOWN, weigh
from stoker.model.config import UNGROUPED
from stoker.model.errors import DeploymentRefused, StackValidationFailed
from stoker.policy import rules
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import Target, Tree
from stoker.resources.deployment_runs import COMPONENT
from stoker.stacks import type_names
from stoker.stacks.templates.outline import OutlinedResource
from stoker.store.tx import Tx

#: Resource type that may come to represent an enrolled server.
STANDS_FOR = "OS::Heat::DeployedServer"


@dataclass(frozen=True, slots=True)
class PlannedDeployment:
    """A deployment of a template to a server with a known id."""

    #: Name of the resource in the outermost template.
    top: str
    place: str
    server_id: str
    #: Group of the config; None if not known yet.
    group: str | None


def plan_deployments(
    within: str, top: str | None, resources: Mapping[str, OutlinedResource]
) -> Iterator[PlannedDeployment]:
    """
    Yield a template's deployments to servers that it names by id.

    ``within`` is the place of a nested template, ``top`` its resource in the outermost template. Raises
    StackValidationFailed for a deployment that the policy of a server in the same template denies.
    """
    for name, each in resources.items():
        if each.type.name not in type_names.DEPLOYMENTS | type_names.GROUPS or each.definition.external_id is not None:
            continue
        place, group = f"resources.{name}", _group(each, resources)
        actions = each.properties.get("actions")
        if group != COMPONENT and isinstance(actions, list) and "CREATE" not in actions:
            continue  # nothing runs at creation, and the policy may change before a later run
        for key, id, written in _servers(each):
            if isinstance(id, str) and id:
                yield PlannedDeployment(top or name, f"{within}{place}.properties.{key}", id, group)
            else:
                _check_own(place, written, group, resources)


def precheck(
    tx: Tx,
    authorizer: DeploymentAuthorizer,
    found: Collection[PlannedDeployment],
    *,
    stack: Tree,
    project_id: str,
    actor: str,
    stands_for: bool,
) -> None:
    """
    Raise DeploymentRefused, with the place, for a deployment that a server's policy would deny.

    ``stands_for``: a resource of the stack may come to represent such a server.
    """
    asked: set[tuple[str, str | None]] = set()
    for each in found:
        if (each.server_id, each.group) in asked:
            continue
        asked.add((each.server_id, each.group))
        try:
            authorizer.precheck(
                tx,
                server_id=each.server_id,
                project_id=project_id,
                stack=stack,
                group=each.group,
                actor=actor,
                standing=stands_for,
            )
        except DeploymentRefused as refused:
            raise DeploymentRefused(f"{each.place}: {refused.message}", refused.decision) from None


def _servers(each: OutlinedResource) -> Iterator[tuple[str, Any, Any]]:
    """Yield (property, the server's id as far as known, the value in the template)."""
    if each.type.name in type_names.DEPLOYMENTS:
        yield "server", each.properties.get("server"), each.definition.properties.get("server")
        return
    known, written = each.properties.get("servers"), each.definition.properties.get("servers")
    if not isinstance(known, Mapping):
        return
    for name, id in known.items():
        yield f"servers.{name}", id, written.get(name) if isinstance(written, Mapping) else None


def _group(each: OutlinedResource, resources: Mapping[str, OutlinedResource]) -> str | None:
    config = resources.get(_referenced_name(each.definition.properties.get("config")) or "")
    if config is None:
        return None
    if config.type.name in type_names.COMPONENTS:
        return COMPONENT
    if config.type.name not in type_names.CONFIGS:
        return None
    said = config.properties.get("group")
    return None if said is UNKNOWN else said or UNGROUPED


def _check_own(place: str, written: Any, group: str | None, resources: Mapping[str, OutlinedResource]) -> None:
    """
    Check a server of the same template. The stack owns the server, so only the policy's groups can deny a deployment.
    """
    name = _referenced_name(written)
    server = resources.get(name or "")
    if name is None or group is None or server is None or server.type.name not in type_names.SERVERS:
        return
    said = server.properties.get(rules.NAME)
    if said is None or weigh(said)[1]:
        return
    held = rules.Policy(allow=rules.PROJECT, groups=rules.read(said).groups)
    target = Target(id=name, name=name, project_id="")
    why = rules.decide(held, target, project_id="", stack=None, group=group)
    if why is not None:
        raise StackValidationFailed(f"{place}: {why}")


def _referenced_name(written: Any) -> str | None:
    """Return the name in a ``get_resource`` call."""
    if not isinstance(written, Mapping) or len(written) != 1:
        return None
    said = written.get("get_resource")
    return said if isinstance(said, str) else None
