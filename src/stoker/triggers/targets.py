"""Resolves a trigger's request: the content that it runs, its servers, and the name and inputs on each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.deployments.configs import content_of, source_inputs
from stoker.model.config import COMPONENT, UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.ids import is_id
from stoker.model.secrets import contains_secret
from stoker.model.server import Server
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action
from stoker.model.trigger import Content
from stoker.resources.base import physical_name
from stoker.resources.deployment_runs import as_structured
from stoker.servers import enrollment
from stoker.stacks import type_names
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import no_resource
from stoker.store import configs, deployments, resources, server_lists, servers, stacks
from stoker.store.tx import Tx
from stoker.triggers.request import TriggerRequest

#: Action of runs of a config that has no actions of its own.
TRIGGER = "TRIGGER"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetDefaults:
    """Name and inputs of the deployment on one server."""

    server_id: str
    name: str
    input_values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a trigger: the content to run and its defaults."""

    content: Content
    #: Of the existing deployments, one per server, in order.
    own: Sequence[TargetDefaults] = ()
    #: Defaults for servers without an existing deployment.
    name: str
    input_values: Mapping[str, Any] = field(default_factory=dict)
    #: The source as shown to users.
    view: Mapping[str, Any]
    stack_id: str | None = None
    timeout: float | None = None
    #: Names of inputs whose values contain a secret of the stack.
    secret: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTrigger:
    """A trigger's source, action and servers, before it is stored."""

    source: Source
    action: str
    servers: Sequence[tuple[Server, TargetDefaults]]


def resolve(tx: Tx, engine: Engine, project_id: str, request: TriggerRequest) -> ResolvedTrigger:
    """Resolve the request of a trigger. Changes nothing. Raises EntityNotFound, Invalid, Conflict."""
    source = _source(tx, engine, project_id, request)
    return ResolvedTrigger(
        source=source, action=_action(source.content, request.action), servers=_servers(tx, project_id, source, request)
    )


def _source(tx: Tx, engine: Engine, project_id: str, request: TriggerRequest) -> Source:
    if request.config_id is not None:
        config = configs.get(tx, request.config_id, project_id)
        content = content_of(config)
        return Source(content=content, name=content.name or config.id, view={"config_id": config.id})
    if request.deployment_id is not None:
        deployment = deployments.get(tx, request.deployment_id, project_id)
        resource = resources.find(tx, deployment.resource_id) if deployment.resource_id else None
        if resource is None:
            return _of_deployment(tx, deployment)
        source = _of_resource(tx, engine, stacks.get(tx, resource.stack_id), resource)
        return replace(source, view={**source.view, "deployment_id": deployment.id})
    stack = find_stack(tx, project_id, request.stack or "")
    name = request.resource or ""
    resource = resources.find_by_name(tx, stack.id, name) or resources.with_physical_id(tx, stack.id, name)
    if resource is None:
        raise no_resource(name, stack)
    return _of_resource(tx, engine, stack, resource)


def find_stack(tx: Tx, project_id: str, name_or_id: str) -> Stack:
    """Return a stack by its name or id. A nested stack is found by its id only. Raises EntityNotFound."""
    stack = stacks.find_by_name(tx, name_or_id, project_id) or (
        stacks.find(tx, name_or_id) if is_id(name_or_id) else None
    )
    if stack is None or stack.project_id != project_id or stack.deleted_at is not None:
        raise EntityNotFound.of("Stack", name_or_id)
    return stack


def _of_deployment(tx: Tx, deployment: Deployment) -> Source:
    """
    Return the source for a deployment without a resource.

    Its config counts as a derived config, whether Stoker or a client derived it.
    """
    config = configs.get(tx, deployment.config_id, deployment.project_id)
    inputs, values = source_inputs(config.inputs)
    name = config.name or deployment.id
    base = {**deployment.input_values, **values}  # the deployment's values may contain REDACTED in place of secrets
    return Source(
        content=replace(content_of(config), inputs=inputs),
        own=(TargetDefaults(server_id=deployment.server_id, name=name, input_values=base),),
        name=name,
        input_values=base,
        view={"deployment_id": deployment.id},
    )


def _of_resource(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> Source:
    kind = engine.type(resource.type).name
    if kind not in type_names.DEPLOYMENTS | type_names.GROUPS | type_names.CONFIGS | type_names.COMPONENTS:
        raise Invalid(
            f"The resource {resource.name} is of type {resource.type}: only deployments, groups of them, components "
            "and configs can be triggered. What is in a nested stack is named by that stack's id."
        )
    if resource.action in (Action.INIT, Action.DELETE) or not resource.properties:
        raise Invalid(f"The resource {resource.name} is not there yet, or is going: there is nothing to trigger.")
    if kind in type_names.CONFIGS | type_names.COMPONENTS:
        source = _of_config(tx, engine, stack, resource)
    else:
        source = _of_deployments(tx, engine, stack, resource, grouped=kind in type_names.GROUPS)
    facts = {"deploy_stack_id": f"{stack.name}/{stack.id}", "deploy_resource_name": resource.name}
    if interrupted := resource.properties.get("on_interrupt"):
        facts["deploy_on_interrupt"] = interrupted
    return replace(
        source,
        content=replace(source.content, facts=facts),
        view={"stack": stack.name, "stack_id": stack.id, "resource": resource.name},
        stack_id=stack.id,
        secret=_secret_names(tx, source),
    )


def _secret_names(tx: Tx, source: Source) -> tuple[str, ...]:
    secrets = tx.secrets.texts
    inputs = [source.input_values, *(defaults.input_values for defaults in source.own)] if secrets else []
    names = {name for values in inputs for name, value in values.items() if contains_secret(value, secrets)}
    return tuple(sorted(names))


def _of_deployments(tx: Tx, engine: Engine, stack: Stack, resource: Resource, *, grouped: bool) -> Source:
    """Return the source for a deployment, or for a group, whose members are in a nested stack of their own."""
    properties = resource.properties
    config = _config(tx, stack.project_id, properties.get("config"))
    content = content_of(config) if config else Content(name=None, group=UNGROUPED, config=None, options={}, facts={})
    members = [(stack, resource)]
    if grouped:
        inner = stacks.find(tx, resource.physical_id) if resource.physical_id else None
        members = [(inner, parent) for parent in resources.of_stack(tx, inner.id)] if inner else []
    return Source(
        content=as_structured(content, properties),
        own=_one_a_server(_own(tx, engine, parent, member, config) for parent, member in members if _is_there(member)),
        name=properties.get("name") or content.name or resource.name,
        input_values=properties.get("input_values") or {},
        view={},
        timeout=properties.get("timeout"),
    )


def _of_config(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> Source:
    """Return the source for a component or config, with all deployments of it in the tree of stacks."""
    config = _config(tx, stack.project_id, resource.physical_id)
    if config is None:
        raise Invalid(f"The resource {resource.name} has no config.")
    tree = {member.id: member for member in stacks.tree(tx, stack.root_id)}
    using = [
        user
        for user in resources.prefetch(tx, list(tree))
        if engine.type(user.type).name in type_names.DEPLOYMENTS
        and _is_there(user)
        and user.properties.get("config") == config.id
    ]
    rendered = {(user.properties.get("input_key"), user.properties.get("input_values_validate")) for user in using}
    if len(rendered) > 1:
        raise Invalid(f"The deployments of {resource.name} put its inputs in place differently: trigger them instead.")
    content = content_of(config)
    return Source(
        content=as_structured(content, using[0].properties) if using else content,
        own=_one_a_server(_own(tx, engine, tree[user.stack_id], user, config) for user in using),
        name=content.name or resource.name,
        view={},
    )


def _config(tx: Tx, project_id: str, id: str | None) -> Config | None:
    return configs.get(tx, id, project_id) if id else None


def _is_there(resource: Resource) -> bool:
    gone = resource.action in (Action.INIT, Action.DELETE)
    return resource.current and not gone and bool(resource.properties.get("server"))


def _own(tx: Tx, engine: Engine, stack: Stack, resource: Resource, config: Config | None) -> TargetDefaults:
    properties = resource.properties
    name = properties.get("name") or (config.name if config else None)
    return TargetDefaults(
        server_id=servers.resolve_id(tx, stack.project_id, properties["server"]),
        name=name or physical_name(StackSession(tx, engine, stack).context, resource),
        input_values=properties.get("input_values") or {},
    )


def _one_a_server(defaults: Iterable[TargetDefaults]) -> tuple[TargetDefaults, ...]:
    """Return the first entry for each server."""
    by_server: dict[str, TargetDefaults] = {}
    for entry in defaults:
        by_server.setdefault(entry.server_id, entry)
    return tuple(by_server.values())


def _action(content: Content, action: str | None) -> str:
    if content.group != COMPONENT:
        return action or TRIGGER
    entries = content.config.get("configs") if isinstance(content.config, Mapping) else None
    names: dict[str, None] = {}
    for entry in entries if isinstance(entries, list) else ():
        actions = entry.get("actions") if isinstance(entry, Mapping) else None
        names |= {str(name): None for name in actions} if isinstance(actions, list) else {}
    if action is None:
        raise Invalid(f"action is needed: the component has {', '.join(names) or 'none'}")
    if action not in names:
        raise Invalid(f"The component has no action {action!r:.100}: it has {', '.join(names) or 'none'}")
    return action


def _servers(
    tx: Tx, project_id: str, source: Source, request: TriggerRequest
) -> Sequence[tuple[Server, TargetDefaults]]:
    """Return the servers of the trigger, each once. Raises Invalid if there are none."""
    own = {defaults.server_id: defaults for defaults in source.own}
    selected: Iterable[Server]
    if request.servers is not None:
        selected = [enrollment.find(tx, project_id, server) for server in request.servers]
    elif request.selector is not None:
        selected_servers = server_lists.find_by_selector(tx, project_id, request.selector)
        matching = sorted(selected_servers, key=lambda server: server.created_at)
        selected = [server for server in matching if not own or server.id in own]
    else:
        selected = _find_servers(tx, project_id, source.own)
    by_id = {server.id: server for server in selected}
    if not by_id:
        raise Invalid(_nothing(source, request))
    default = TargetDefaults(server_id="", name=source.name, input_values=source.input_values)
    return [(server, own.get(server.id) or replace(default, server_id=server.id)) for server in by_id.values()]


def _find_servers(tx: Tx, project_id: str, own: Sequence[TargetDefaults]) -> list[Server]:
    """Return the servers of existing deployments."""
    by_id = servers.find_several(tx, [defaults.server_id for defaults in own])
    of_project = {id: server for id, server in by_id.items() if server.project_id == project_id}
    for defaults in own:
        if defaults.server_id not in of_project:
            raise EntityNotFound(f"The Server ({defaults.server_id}) could not be found: no agent could run it there.")
    return [of_project[defaults.server_id] for defaults in own]


def _nothing(source: Source, request: TriggerRequest) -> str:
    if request.selector is not None:
        what = "matches the selector" if request.selector.text else "has the labels"
        return f"no server {what} {request.selector}"[:400]
    if source.stack_id is not None:
        return "no deployment has brought that to any server: say which by servers, labels or selector"
    return "servers, labels or a selector are needed: a config says nothing of where to run it"
