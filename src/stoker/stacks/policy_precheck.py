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
    for name, resource in resources.items():
        if (
            resource.type.name not in type_names.DEPLOYMENTS | type_names.GROUPS
            or resource.definition.external_id is not None
        ):
            continue
        place, group = f"resources.{name}", _group(resource, resources)
        actions = resource.properties.get("actions")
        if group != COMPONENT and isinstance(actions, list) and "CREATE" not in actions:
            continue  # nothing runs at creation, and the policy may change before a later run
        for key, id, written in _servers(resource):
            if isinstance(id, str) and id:
                yield PlannedDeployment(top or name, f"{within}{place}.properties.{key}", id, group)
            else:
                _check_own(place, written, group, resources)


def precheck(
    tx: Tx,
    authorizer: DeploymentAuthorizer,
    planned: Collection[PlannedDeployment],
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
    checked: set[tuple[str, str | None]] = set()
    for deployment in planned:
        if (deployment.server_id, deployment.group) in checked:
            continue
        checked.add((deployment.server_id, deployment.group))
        try:
            authorizer.precheck(
                tx,
                server_id=deployment.server_id,
                project_id=project_id,
                stack=stack,
                group=deployment.group,
                actor=actor,
                standing=stands_for,
            )
        except DeploymentRefused as refused:
            raise DeploymentRefused(f"{deployment.place}: {refused.message}", refused.decision) from None


def _servers(resource: OutlinedResource) -> Iterator[tuple[str, Any, Any]]:
    """Yield (property, the server's id as far as known, the value in the template)."""
    if resource.type.name in type_names.DEPLOYMENTS:
        yield "server", resource.properties.get("server"), resource.definition.properties.get("server")
        return
    ids, written = resource.properties.get("servers"), resource.definition.properties.get("servers")
    if not isinstance(ids, Mapping):
        return
    for name, id in ids.items():
        yield f"servers.{name}", id, written.get(name) if isinstance(written, Mapping) else None


def _group(resource: OutlinedResource, resources: Mapping[str, OutlinedResource]) -> str | None:
    config = resources.get(_referenced_name(resource.definition.properties.get("config")) or "")
    if config is None:
        return None
    if config.type.name in type_names.COMPONENTS:
        return COMPONENT
    if config.type.name not in type_names.CONFIGS:
        return None
    group = config.properties.get("group")
    return None if group is UNKNOWN else group or UNGROUPED


def _check_own(place: str, written: Any, group: str | None, resources: Mapping[str, OutlinedResource]) -> None:
    """
    Check a server of the same template. The stack owns the server, so only the policy's groups can deny a deployment.
    """
    name = _referenced_name(written)
    server = resources.get(name or "")
    if name is None or group is None or server is None or server.type.name not in type_names.SERVERS:
        return
    value = server.properties.get(rules.NAME)
    if value is None or weigh(value)[1]:
        return
    group_policy = rules.Policy(allow=rules.PROJECT, groups=rules.read(value).groups)
    target = Target(id=name, name=name, project_id="")
    reason = rules.decide(group_policy, target, project_id="", stack=None, group=group)
    if reason is not None:
        raise StackValidationFailed(f"{place}: {reason}")


def _referenced_name(written: Any) -> str | None:
    """Return the name in a ``get_resource`` call."""
    if not isinstance(written, Mapping) or len(written) != 1:
        return None
    name = written.get("get_resource")
    return name if isinstance(name, str) else None
