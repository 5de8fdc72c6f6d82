"""Shared functions of SoftwareDeploymentGroup and StructuredDeploymentGroup: one deployment per server of the group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from stoker.hot import UNKNOWN, Definition, select
from stoker.model.stack import Resource
from stoker.resources import deployment_runs, label_groups, nested_base, rollout
from stoker.resources.base import Context, Outcome, Properties, ResourceType
from stoker.resources.group_base import ACTIONS, Group
from stoker.resources.properties import Property, PropertyError
from stoker.resources.rollout import CAREFUL, Members, clash
from stoker.store import resources, servers

_WHICH: Mapping[str, Property] = {
    "servers": Property(
        kind="map", update_allowed=True, description="Ids of servers by names, which name the deployments."
    ),
    "labels": Property(
        kind="map",
        update_allowed=True,
        description="Instead of servers: it is of whatever servers have all these labels (Stoker's own).",
    ),
    "selector": Property(
        kind="string",
        update_allowed=True,
        description="Instead of servers: a condition over labels and facts (Stoker's own), docs/servers.md.",
    ),
}
#: The attribute that maps failed members to the reasons.
_FAILED = "failed_members"
#: Attribute names of the group and of its members.
_ALL = {
    "deploy_stdouts": "deploy_stdout",
    "deploy_stderrs": "deploy_stderr",
    "deploy_status_codes": "deploy_status_code",
}


def group_of(one: ResourceType, name: str, alias: str, description: str) -> ResourceType:
    """
    Return the resource type whose members are deployments of the type ``one``.

    ``name`` and ``alias`` are names of the new type.
    """
    assert one.properties is not None
    shared = {key: schema for key, schema in one.properties.items() if key != "server"}

    def members(resource: Resource, properties: Properties) -> Members:
        member_properties = {key: properties[key] for key in shared if properties[key] is not None}
        return {
            server: {"type": one.name, "properties": {**member_properties, "server": id}}
            for server, id in label_groups.members(resource, properties).items()
        }

    many = _Many(Group(members, rollout.schema(CAREFUL, CAREFUL)))
    return ResourceType(
        name=name,
        properties={**shared, **_WHICH},
        attributes=None,
        create=many.create,
        update=many.update,
        delete=many.delete,
        check=many.check,
        check_policy=many.check_policy,
        adopt=many.adopt,
        exists=nested_base.exists,
        cancel=nested_base.cancel,
        is_stale=nested_base.is_stale,
        actions=ACTIONS,
        attribute_at=_attribute,
        members=_foreseen(one, shared, 1),
        every_member=_foreseen(one, shared),
        validate=label_groups.validate,
        predecessors=_predecessors,
        retries=True,
        retry=many.create,
        repeats_inside=True,
        may_return=_never,  # the replacement may have run on the same servers
        aliases=(alias,),
        description=description,
    )


def _never(_resource: Resource, _replacement: Resource) -> bool:
    return False


def _predecessors(context: Context, definition: Definition, properties: Properties) -> Iterator[str]:
    """
    Yield the ids of the stack's groups that run something on the same servers at their removal, if they have the same
    name or the same config.
    """
    content = deployment_runs.content_for(context, properties)
    for resource in resources.of_stack(context.tx, context.stack_id):
        if (
            _WHICH.keys() <= resource.properties.keys()
            and deployment_runs.acts_at_removal(context, resource)
            and (
                resource.name == definition.name
                or deployment_runs.runs_same_config(context, resource.properties, content)
            )
            and _may_share_servers(context, resource, properties)
        ):
            yield resource.id


def _may_share_servers(context: Context, resource: Resource, properties: Properties) -> bool:
    """Return whether a group with these properties may have a server of ``resource``. A selector finds any server."""
    if label_groups.selector_of(properties) is not None or label_groups.selector_of(resource.properties) is not None:
        return True
    ids = [
        {servers.resolve_id(context.tx, context.project_id, str(id)) for id in (group["servers"] or {}).values()}
        for group in (properties, resource.properties)
    ]
    return bool(ids[0] & ids[1])


@dataclass(frozen=True, slots=True)
class _Many:
    """
    The functions of a group whose members are servers: named servers, or the servers that have the group's labels.
    """

    group: Group

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.group.create(context, label_groups.choose(context, resource, properties), properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.group.update(context, label_groups.choose(context, resource, properties), properties)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.group.adopt(context, label_groups.choose(context, resource, properties), properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        label_groups.forget(context, resource)
        return nested_base.delete(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        outcome = self.group.check(context, resource)
        if outcome.done:
            label_groups.reselect(context, resource)
        return outcome

    def check_policy(self, policy: Any, properties: Properties) -> None:
        """
        Validate the ``update_policy``.

        Raises PropertyError, also if a server has the name of another server's health check member.
        """
        self.group.check_policy(policy, properties)
        servers = properties["servers"]
        if servers in (None, UNKNOWN) or not isinstance(policy, Mapping):
            return
        for name, entry in policy.items():
            if isinstance(entry, Mapping) and entry.get("health_check") is not None and (taken := clash(servers)):
                problem = f"the health of a server would have the name of the server {taken!r}: name that one otherwise"
                raise PropertyError((name, "health_check"), problem)


def _attribute(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    if name.startswith("resource."):
        return nested_base.inside(context, resource, name, path)
    look = context.nested.view(context, resource)
    if look is None:
        return None
    if name == _FAILED:
        return select(dict(resource.data.get("failed") or {}), path)
    wanted = _ALL.get(name, name)
    asked = label_groups.members(resource, resource.properties)
    return {server: look.attribute(server, wanted, path) for server in look.names if server in asked}


def _foreseen(
    one: ResourceType, shared: Mapping[str, Property], most: int | None = None
) -> Callable[[Properties], Iterable[tuple[str, str, Properties]]]:
    def members(properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        servers = properties["servers"]
        if servers is UNKNOWN:
            return ()
        some = {"any": UNKNOWN} if servers is None else dict(islice(servers.items(), most))
        member_properties = {key: properties[key] for key in shared if properties[key] is not None}
        return tuple((name, one.name, {**member_properties, "server": id}) for name, id in some.items())

    return members
