"""
Checks deployments of a template against servers' policies before the stack is created or updated.

The check covers servers that the template names by id and servers of the same template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.hot import UNKNOWN, weigh
from stoker.model.config import COMPONENT, UNGROUPED
from stoker.model.errors import DeploymentRefused, StackValidationFailed
from stoker.policy import rules
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import Target, Tree
from stoker.resources import software_config
from stoker.stacks import type_names
from stoker.stacks.templates.outline import OutlinedResource
from stoker.store import servers
from stoker.store.tx import Tx

#: Resource type that may come to represent an enrolled server.
STANDS_FOR = "OS::Heat::DeployedServer"


@dataclass(frozen=True, slots=True)
class PlannedDeployment:
    """A deployment of a template to a server with a known id."""

    #: Name of the resource in the outermost template.
    top: str
    place: str
    #: None for a server of the same template, which ``server_name`` names.
    server_id: str | None
    #: Group of the config; None if not known yet.
    group: str | None
    #: The config and its options as far as known, and the actions that run when the deployment is created.
    config: Any = None
    options: Any = None
    actions: tuple[str, ...] = ()
    #: The id of a config that exists already.
    config_id: str | None = None
    server_name: str | None = None


def plan_deployments(
    within: str, top: str | None, resources: Mapping[str, OutlinedResource]
) -> Iterator[PlannedDeployment]:
    """
    Yield a template's deployments to servers that it names by id, or by the name of a server of its own.

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
        planned = _with_content(PlannedDeployment(top or name, "", None, group), resource, resources)
        for key, id, written in _servers(resource):
            key_place = f"{within}{place}.properties.{key}"
            if isinstance(id, str) and id:
                yield replace(planned, place=key_place, server_id=id)
            else:
                _check_own(place, written, group, resources)
                if server_name := _deployed_server_name(written, resources):
                    yield replace(planned, place=key_place, server_name=server_name)


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
        if deployment.server_id is None:
            continue  # a server of the same template, which was checked with the template
        if (deployment.server_id, deployment.group) in checked:
            continue
        checked.add((deployment.server_id, deployment.group))
        try:
            authorizer.precheck(
                tx,
                server_id=servers.resolve_id(tx, project_id, deployment.server_id),
                project_id=project_id,
                stack=stack,
                group=deployment.group,
                actor=actor,
                standing=stands_for,
            )
        except DeploymentRefused as refused:
            raise DeploymentRefused(f"{deployment.place}: {refused.message}", refused.decision) from None


def _with_content(
    planned: PlannedDeployment, resource: OutlinedResource, resources: Mapping[str, OutlinedResource]
) -> PlannedDeployment:
    """Return the planned deployment with what is known of its config."""
    actions = resource.properties.get("actions")
    known_actions = tuple(str(action) for action in actions) if isinstance(actions, list) else ()
    own = resources.get(_referenced_name(resource.definition.properties.get("config")) or "")
    if own is None:
        id = resource.properties.get("config")
        return replace(planned, actions=known_actions, config_id=id if isinstance(id, str) and id else None)
    content = {"configs": own.properties.get("configs")} if planned.group == COMPONENT else None
    return replace(planned, actions=known_actions, config=content, options=own.properties.get("options"))


def _deployed_server_name(written: Any, resources: Mapping[str, OutlinedResource]) -> str | None:
    """Return the name of a server of the same template that may be enrolled, if the name is known."""
    server = resources.get(_referenced_name(written) or "")
    if server is None or server.type.name != STANDS_FOR:
        return None
    name = server.properties.get("name")
    return name if isinstance(name, str) and name else None


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
    group = software_config.expand(config.properties).get("group")
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
