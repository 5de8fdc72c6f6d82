"""
Checks deployments of a template against servers' policies before the stack is created or updated.

The check covers servers that the template names by id and servers of the same template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.deployments.hook_delivery import find_hook
from stoker.hot import UNKNOWN, weigh
from stoker.model.config import COMPONENT, UNGROUPED
from stoker.model.delivered_hook import OPTION, DeliveredHook, delivered
from stoker.model.errors import DeploymentRefused, Invalid, StackValidationFailed
from stoker.policy import rules
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import PROJECT, SITE_DEFAULTS, Policy, SiteDefaults, Target, Tree
from stoker.resources import software_config
from stoker.stacks import type_names
from stoker.stacks.templates.outline import OutlinedResource
from stoker.store import configs, servers
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
    #: Name of a server of the same template that may come to represent an enrolled server.
    server_name: str | None = None
    #: Name of the resource of a server of the same template.
    own_server: str | None = None
    #: The policy that the template declares for that server; None: it declares none. UNKNOWN: not known yet.
    policy: Any = None


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
                own = _plan_own(replace(planned, place=key_place), written, resources)
                if own is not None:
                    _check_own(place, own)
                    yield own


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
    checked: set[tuple[str, str | None, DeliveredHook | None]] = set()
    for deployment in planned:
        group, hook = _find_content(tx, deployment, project_id)
        server_id = _find_server_id(tx, deployment, project_id)
        if server_id is None:
            if reason := _deny_own(deployment, group, hook, authorizer.site):
                raise StackValidationFailed(f"{deployment.place}: {reason}")
            continue
        if (server_id, group, hook) in checked:
            continue
        checked.add((server_id, group, hook))
        try:
            authorizer.precheck(
                tx,
                server_id=server_id,
                project_id=project_id,
                stack=stack,
                group=group,
                hook=hook,
                actor=actor,
                standing=stands_for,
            )
        except DeploymentRefused as refused:
            raise DeploymentRefused(f"{deployment.place}: {refused.message}", refused.decision) from None


def _find_content(tx: Tx, deployment: PlannedDeployment, project_id: str) -> tuple[str | None, DeliveredHook | None]:
    """
    Return the group and the delivered hook of the config, as far as known.

    Raises StackValidationFailed if the project has no such stored hook.
    """
    if deployment.config_id is not None:
        stored = configs.find(tx, deployment.config_id)
        if stored is None or stored.project_id != project_id:
            return None, None
        return stored.group or UNGROUPED, delivered(stored.options)
    options = deployment.options
    option = options.get(OPTION) if isinstance(options, Mapping) else None
    if option is None or weigh(option)[1]:
        return deployment.group, None
    try:
        return deployment.group, find_hook(tx, project_id, option)
    except Invalid as error:
        raise StackValidationFailed(f"{deployment.place}: {error.message}") from None


def _find_server_id(tx: Tx, deployment: PlannedDeployment, project_id: str) -> str | None:
    """Return the id of the server whose stored policy decides; None: a new server, or one with a policy of its own."""
    if deployment.server_id is not None:
        return servers.resolve_id(tx, project_id, deployment.server_id)
    if deployment.server_name is None or deployment.policy is not None:
        return None
    enrolled = servers.find_enrolled(tx, deployment.server_name, project_id)
    return enrolled.id if enrolled else None


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
    properties = software_config.expand(own.properties) if own.type.name in type_names.CONFIGS else own.properties
    options = properties.get("options")
    return replace(planned, actions=known_actions, config=content, options=options)


def _plan_own(
    planned: PlannedDeployment, written: Any, resources: Mapping[str, OutlinedResource]
) -> PlannedDeployment | None:
    """Return the deployment to a server of the same template, or None if ``written`` names none."""
    name = _referenced_name(written) or ""
    server = resources.get(name)
    if server is None or server.type.name not in type_names.SERVERS:
        return None
    value, server_name = server.properties.get(rules.NAME), server.properties.get("name")
    policy = value if value is None else UNKNOWN if weigh(value)[1] else rules.read(value)
    is_named = server.type.name == STANDS_FOR and isinstance(server_name, str) and server_name
    return replace(planned, own_server=name, policy=policy, server_name=server_name if is_named else None)


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


def _check_own(place: str, deployment: PlannedDeployment) -> None:
    """Check the group of a deployment to a server of the same template. Raises StackValidationFailed."""
    if reason := _deny_own(deployment, deployment.group, None, SITE_DEFAULTS):
        raise StackValidationFailed(f"{place}: {reason}")


def _deny_own(
    deployment: PlannedDeployment, group: str | None, hook: DeliveredHook | None, site: SiteDefaults
) -> str | None:
    """
    Return why a server of the same template denies the deployment, or None.

    The stack owns the server, so only the policy's groups and hooks can deny a deployment.
    """
    if group is None or deployment.own_server is None or deployment.policy is UNKNOWN:
        return None
    declared = deployment.policy or Policy()
    policy = Policy(allow=PROJECT, groups=declared.groups, hooks=declared.hooks)
    target = Target(id=deployment.own_server, name=deployment.own_server, project_id="")
    return rules.decide(policy, target, project_id="", stack=None, group=group, hook=hook, site=site)


def _referenced_name(written: Any) -> str | None:
    """Return the name in a ``get_resource`` call."""
    if not isinstance(written, Mapping) or len(written) != 1:
        return None
    name = written.get("get_resource")
    return name if isinstance(name, str) else None
