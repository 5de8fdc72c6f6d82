"""Checks of the runs that a stack plans against the policies and hooks of their servers, before the stack starts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from stoker.deployments.configs import expand_known, find_hook
from stoker.deployments.hook_check import describe_missing_hook, describe_missing_program, needed_groups
from stoker.hot import UNKNOWN, Definition, Template, weigh
from stoker.model.config import COMPONENT, UNGROUPED
from stoker.model.delivered_hook import OPTION, DeliveredHook, delivered
from stoker.model.errors import DeploymentRefused, Invalid, StackValidationFailed
from stoker.model.server import Server
from stoker.model.stack import Stack
from stoker.policy import rules
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import PROJECT, SITE_DEFAULTS, Policy, SiteDefaults, Target, Tree
from stoker.resources.base import Properties, ResourceType
from stoker.store import configs, servers
from stoker.store.tx import Tx

DEPLOYMENTS = frozenset(("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"))
GROUPS = frozenset(("OS::Heat::SoftwareDeploymentGroup", "OS::Heat::StructuredDeploymentGroup"))
CONFIGS = frozenset(("OS::Heat::SoftwareConfig", "OS::Heat::StructuredConfig"))
COMPONENTS = frozenset(("OS::Heat::SoftwareComponent",))
SERVERS = frozenset(("OS::Heat::DeployedServer", "OS::Nova::Server"))


class OutlinedResource(Struct, frozen=True, kw_only=True):
    """A checked resource. Values that only a running resource knows are UNKNOWN."""

    type: ResourceType
    #: With the final type and the contents of files.
    definition: Definition
    properties: Properties
    metadata: Any = field(default_factory=dict)
    #: The resources inside the resource; None if the resource is not a stack.
    inside: InnerOutline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerOutline:
    """The resources inside a nested stack or group."""

    #: By name. Of a group, all members or one sample.
    resources: Mapping[str, OutlinedResource]
    #: None for a group, whose template Stoker generates.
    template: Template | None = None


#: Resource type that may come to represent an enrolled server.
STANDS_FOR = "OS::Heat::DeployedServer"


class PlannedDeployment(Struct, frozen=True):
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
        if resource.type.name not in DEPLOYMENTS | GROUPS or resource.definition.external_id is not None:
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
    find_server_id = cache(partial(_find_server_id, tx, project_id))
    for deployment in planned:
        group, hook = _find_content(tx, deployment, project_id)
        # The policy that the template declares for a server of its own decides in place of a stored one.
        name = deployment.server_name if deployment.policy is None else None
        server_id = find_server_id(deployment.server_id, name)
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


def _find_server_id(tx: Tx, project_id: str, id: str | None, name: str | None) -> str | None:
    """Return the id of the server with this id or name, which may be unknown to Stoker; None: a new server."""
    if id is not None:
        return servers.resolve_id(tx, project_id, id)
    enrolled = servers.find_enrolled(tx, name, project_id) if name is not None else None
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
    properties = expand_known(own.properties) if own.type.name in CONFIGS else own.properties
    options = properties.get("options")
    return replace(planned, actions=known_actions, config=content, options=options)


def _plan_own(
    planned: PlannedDeployment, written: Any, resources: Mapping[str, OutlinedResource]
) -> PlannedDeployment | None:
    """Return the deployment to a server of the same template, or None if ``written`` names none."""
    name = _referenced_name(written) or ""
    server = resources.get(name)
    if server is None or server.type.name not in SERVERS:
        return None
    value, server_name = server.properties.get(rules.NAME), server.properties.get("name")
    policy = value if value is None else UNKNOWN if weigh(value)[1] else rules.read(value)
    is_named = server.type.name == STANDS_FOR and isinstance(server_name, str) and server_name
    return replace(planned, own_server=name, policy=policy, server_name=server_name if is_named else None)


def _servers(resource: OutlinedResource) -> Iterator[tuple[str, Any, Any]]:
    """Yield (property, the server's id as far as known, the value in the template)."""
    if resource.type.name in DEPLOYMENTS:
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
    if config.type.name in COMPONENTS:
        return COMPONENT
    if config.type.name not in CONFIGS:
        return None
    group = expand_known(config.properties).get("group")
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


#: The first action of a deployment, and that of an update.
_CREATE, _UPDATE = "CREATE", "UPDATE"
_EVERY_ACTION = (_CREATE, _UPDATE, "DELETE", "SUSPEND", "RESUME")


def refuse_missing_hooks(tx: Tx, planned: Iterable[PlannedDeployment], project_id: str) -> None:
    """Raise StackValidationFailed, with the place, for a deployment whose server certainly lacks the hook."""
    for place, server, groups in _needs(tx, planned, project_id):
        if reason := describe_missing_hook(server, groups, project_id):
            raise StackValidationFailed(f"{place}: {reason}")


def refuse_changed_hooks(tx: Tx, planned: Iterable[PlannedDeployment], stack: Stack) -> None:
    """
    Raise StackValidationFailed, with the place, for an existing deployment whose new config needs a missing hook.

    A group that the stack's deployments on the server have already is no change, and refuses no update.
    """
    to_run = (
        replace(deployment, actions=(_UPDATE,))
        for deployment in planned
        if deployment.group == COMPONENT or not deployment.actions or _UPDATE in deployment.actions
    )
    for place, server, groups in _needs(tx, to_run, stack.project_id):
        if not describe_missing_hook(server, groups, stack.project_id):
            continue
        new = groups - _present_groups(tx, stack, server.id)
        if reason := describe_missing_hook(server, new, stack.project_id):
            raise StackValidationFailed(f"{place}: {reason}")


def list_missing_programs(tx: Tx, planned: Iterable[PlannedDeployment], project_id: str) -> list[str]:
    """Return a warning for each deployment whose server lacks the program that its hook calls."""
    warnings = [
        f"{place}: {reason}"
        for place, server, groups in _needs(tx, planned, project_id)
        if server.project_id == project_id
        and (reason := describe_missing_program(server, servers.load_facts(tx, server.id), groups))
    ]
    return list(dict.fromkeys(warnings))


def _needs(
    tx: Tx, planned: Iterable[PlannedDeployment], project_id: str
) -> Iterator[tuple[str, Server, frozenset[str]]]:
    """Yield (place, server, groups whose hooks the server needs) of deployments to known servers."""
    find_server = cache(partial(_find_server, tx, project_id))
    for deployment in planned:
        group, config, options = deployment.group, deployment.config, deployment.options
        if deployment.config_id is not None:
            stored = configs.find(tx, deployment.config_id)
            if stored is None or stored.project_id != project_id:
                continue
            group, config, options = stored.group, stored.config, stored.options
        groups = needed_groups(group, config, options, deployment.actions or (_CREATE,))
        if not groups:
            continue
        server = find_server(deployment.server_id, deployment.server_name)
        if server is not None:
            yield deployment.place, server, groups


def _find_server(tx: Tx, project_id: str, id: str | None, name: str | None) -> Server | None:
    server_id = _find_server_id(tx, project_id, id, name)
    return servers.find(tx, server_id) if server_id is not None else None


def _present_groups(tx: Tx, stack: Stack, server_id: str) -> frozenset[str]:
    """Return the groups whose hooks the stack's deployments on the server need already."""
    present = configs.of_tree(tx, stack.root_id, server_id)
    needs = (needed_groups(config.group, config.config, config.options, _EVERY_ACTION) for config in present)
    return frozenset().union(*needs)
