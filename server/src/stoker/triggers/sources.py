"""
Finds the source of a trigger: the content that it runs, and the existing deployments with their names and inputs.

A deployment of a stack is triggered with the config and inputs of its last success. While an update of the deployment
has not succeeded, these are not the ones of the stack's present template, but they are what its server has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from stoker.deployments.configs import source_inputs
from stoker.hot.definition import sort_requirements
from stoker.hot.words import list_few
from stoker.model.config import Content
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.ids import is_id
from stoker.model.stack import Action, Resource, Stack
from stoker.resources.base import physical_name
from stoker.resources.roles import ProvidesConfig, RunsConfig
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import no_resource
from stoker.store import configs, deployments, resources, servers, stacks
from stoker.store.tx import Tx
from stoker.triggers.request import TriggerRequest
from stoker.types.deployment_runs import applied_properties, content_of_properties, stack_facts


def list_in_order(root: Stack, nested: Iterable[Stack], present: Iterable[Resource]) -> Iterator[tuple[str, Resource]]:
    """
    Yield the current resources, of those ``present``, of a stack and of ``nested``, each with its path, such as
    ``group/web1``: nested ones after the resource that represents their stack.
    """
    by_stack: dict[str, list[Resource]] = {}
    for resource in present:
        if resource.current:
            by_stack.setdefault(resource.stack_id, []).append(resource)
    inner = {stack.parent_resource_id: stack for stack in nested if stack.parent_resource_id}
    return _walk(root, by_stack, inner, "")


def _walk(
    stack: Stack, by_stack: Mapping[str, Sequence[Resource]], inner: Mapping[str, Stack], prefix: str
) -> Iterator[tuple[str, Resource]]:
    by_name = {resource.name: resource for resource in sorted(by_stack.get(stack.id, ()), key=lambda each: each.name)}
    # By ids: the names alone may form a cycle while an update reverses a dependency.
    required = {
        name: {other for other, id in resource.requires.items() if other in by_name and by_name[other].id == id}
        for name, resource in by_name.items()
    }
    for name in sort_requirements(required):
        resource = by_name[name]
        yield prefix + name, resource
        if resource.id in inner:
            yield from _walk(inner[resource.id], by_stack, inner, f"{prefix}{name}/")


#: The properties of a deployment that decide how the content is rendered.
_RENDERING = ("input_key", "input_values_validate")
#: Limits of the names in one message, and in the view of a source.
_FEW, _SHOWN = 5, 20


class TargetDefaults(Struct, frozen=True, kw_only=True):
    """Name and inputs of one target: those of an existing deployment, or the defaults for a server without one."""

    server_id: str
    name: str
    input_values: Mapping[str, Any] = field(default_factory=dict)
    #: The path of the deployment's resource in its stack, such as ``group/web1``.
    resource_name: str | None = None


class Source(Struct, frozen=True, kw_only=True):
    """The source of a trigger: the content to run and its defaults."""

    content: Content
    #: Of the existing deployments, in the order in which a server runs them.
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


class _Member(Struct, frozen=True):
    """A deployment of a stack."""

    stack: Stack
    resource: Resource
    #: The path of the resource in its stack.
    path: str
    #: The properties with which the deployment last succeeded.
    applied: Mapping[str, Any]

    @property
    def is_outdated(self) -> bool:
        """Whether the deployment last succeeded with other properties than its present ones."""
        return self.applied != self.resource.properties

    @property
    def runs(self) -> tuple[Any, ...]:
        """What decides the content that the deployment runs."""
        return (self.applied.get("config"), *(self.applied.get(name) for name in _RENDERING))


def find_source(tx: Tx, engine: Engine, project_id: str, request: TriggerRequest) -> Source:
    """Find the source that the request names. Raises EntityNotFound, Invalid."""
    if request.config_id is not None:
        config = configs.get(tx, request.config_id, project_id)
        content = Content.of(config)
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
    """Return the source for a deployment without a resource, whose config counts as a derived one."""
    config = configs.get(tx, deployment.config_id, deployment.project_id)
    inputs, values = source_inputs(config.inputs)
    name = config.name or deployment.id
    base = {**deployment.input_values, **values}  # the deployment's values may contain REDACTED in place of secrets
    return Source(
        content=replace(Content.of(config), inputs=inputs),
        own=(TargetDefaults(server_id=deployment.server_id, name=name, input_values=base),),
        name=name,
        input_values=base,
        view={"deployment_id": deployment.id},
    )


def _triggered_type(engine: Engine, resource: Resource) -> RunsConfig | ProvidesConfig:
    """Return the type of a resource that can be triggered. Raises Invalid."""
    kind = engine.type(resource.type)
    if not isinstance(kind, RunsConfig | ProvidesConfig):
        raise Invalid(
            f"The resource {resource.name} is of type {resource.type}: only deployments, groups of them, components "
            "and configs can be triggered. What is in a nested stack is named by that stack's id."
        )
    if resource.action in (Action.INIT, Action.DELETE) or not resource.properties:
        raise Invalid(f"The resource {resource.name} is not there yet, or is going: there is nothing to trigger.")
    if isinstance(kind, ProvidesConfig) and not resource.physical_id:
        raise Invalid(f"The resource {resource.name} has no config.")
    return kind


def _of_resource(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> Source:
    kind = _triggered_type(engine, resource)
    if isinstance(kind, ProvidesConfig):
        members = _list_users(tx, engine, stack, resource)
        present: Mapping[str, Any] = {"config": resource.physical_id}
        defaults: Mapping[str, Any] = {}
    else:
        members = _list_members(tx, stack, resource, grouped=kind.is_group)
        present = resource.properties
        defaults = {**present, **(members[0].applied if members else {})}
    _refuse_difference(resource, members, present.get("config"))
    content = content_of_properties(tx, stack.project_id, members[0].applied if members else present)
    outdated = [member.path for member in members if member.is_outdated][:_SHOWN]
    source = Source(
        content=replace(content, facts=stack_facts(stack.name, stack.id, resource.name, resource.properties)),
        own=[_own(tx, engine, member, content) for member in members],
        name=defaults.get("name") or content.name or resource.name,
        input_values=defaults.get("input_values") or {},
        view={
            "stack": stack.name,
            "stack_id": stack.id,
            "resource": resource.name,
            **({"last_applied": outdated} if outdated else {}),
        },
        stack_id=stack.id,
        timeout=defaults.get("timeout"),
    )
    return with_secret_names(tx, source)


def with_secret_names(tx: Tx, source: Source) -> Source:
    """Return the source with the names of the inputs whose values contain a secret that the transaction knows."""
    inputs = [source.input_values, *(defaults.input_values for defaults in source.own)]
    names = {name for values in inputs for name, value in values.items() if tx.secrets.contain(value)}
    return replace(source, secret=tuple(sorted(names)))


def _list_members(tx: Tx, stack: Stack, resource: Resource, *, grouped: bool) -> list[_Member]:
    """Return a deployment, or the members of a group, which are in a nested stack of their own."""
    if not grouped:
        return [_member(tx, stack, resource, resource.name)] if _is_there(resource) else []
    inner = stacks.find(tx, resource.physical_id) if resource.physical_id else None
    if inner is None:
        return []
    listed = list_in_order(inner, (), resources.of_stack(tx, inner.id))
    return [_member(tx, inner, member, f"{resource.name}/{path}") for path, member in listed if _is_there(member)]


def _list_users(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> list[_Member]:
    """Return all deployments that use a config or component, in the tree of stacks."""
    tree = stacks.tree(tx, stack.root_id)
    by_id = {member.id: member for member in tree}
    # An update that has not succeeded leaves deployments with the config that another one has replaced.
    ids = {each.physical_id for each in (resource, *resources.retired(tx, stack.id, resource.name))}
    members = (
        _member(tx, by_id[user.stack_id], user, path)
        for path, user in list_in_order(tree[0], tree[1:], resources.prime(tx, list(by_id)))
        if isinstance(kind := engine.type(user.type), RunsConfig) and not kind.is_group and _is_there(user)
    )
    return [member for member in members if member.applied.get("config") in ids]


def _member(tx: Tx, stack: Stack, resource: Resource, path: str) -> _Member:
    applied = applied_properties(resource)
    if applied != resource.properties and applied.get("config") and configs.find(tx, applied["config"]) is None:
        applied = resource.properties  # the update of a group that tolerates the failure has deleted the config
    return _Member(stack, resource, path, applied)


def _refuse_difference(resource: Resource, members: Sequence[_Member], present: Any) -> None:
    """Raise Invalid if members run different content. ``present``: the id of the resource's present config."""
    if len({member.runs for member in members}) <= 1:
        return
    others = [member.path for member in members if member.applied.get("config") != present]
    if not others:
        raise Invalid(f"The deployments of {resource.name} put its inputs in place differently: trigger them instead.")
    raise Invalid(
        f"Some deployments of {resource.name} have not applied its present config yet: {list_few(others, _FEW)}."
        " Complete the update of the stack first, or trigger the deployments one by one."
    )


def _is_there(resource: Resource) -> bool:
    gone = resource.action in (Action.INIT, Action.DELETE)
    return resource.current and not gone and bool(resource.properties.get("server"))


def _own(tx: Tx, engine: Engine, member: _Member, content: Content) -> TargetDefaults:
    properties = member.applied
    name = properties.get("name") or content.name
    return TargetDefaults(
        server_id=servers.resolve_id(tx, member.stack.project_id, properties["server"]),
        name=name or physical_name(StackSession(tx, engine, member.stack).context, member.resource),
        input_values=properties.get("input_values") or {},
        resource_name=member.path,
    )
