"""What SoftwareDeploymentGroup and StructuredDeploymentGroup share: one deployment for every server of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.stack import Resource
from stoker.resources import grouping, nesting
from stoker.resources.base import Context, Properties, ResourceType
from stoker.resources.grouping import Group, Members
from stoker.resources.properties import Property

_SERVERS = Property(
    kind="map", required=True, update_allowed=True, description="Ids of servers by names, which name the deployments."
)
#: What the group calls its members' attributes.
_ALL = {
    "deploy_stdouts": "deploy_stdout",
    "deploy_stderrs": "deploy_stderr",
    "deploy_status_codes": "deploy_status_code",
}


def group_of(one: ResourceType, name: str, alias: str, description: str) -> ResourceType:
    """The type whose members are deployments of type ``one``."""
    assert one.properties is not None
    shared = {key: each for key, each in one.properties.items() if key != "server"}

    def members(_resource: Resource, properties: Properties) -> Members:
        given = {key: properties[key] for key in shared if properties[key] is not None}
        return {
            server: {"type": one.name, "properties": {**given, "server": id}}
            for server, id in properties["servers"].items()
        }

    group = Group(members, grouping.ROLLING)
    return ResourceType(
        name=name,
        properties={**shared, "servers": _SERVERS},
        attributes=None,
        create=group.create,
        update=group.update,
        delete=nesting.delete,
        check=group.check,
        adopt=group.adopt,
        exists=nesting.exists,
        cancel=nesting.cancel,
        is_stale=group.is_stale,
        actions=nesting.ACTIONS,
        attribute_at=_attribute,
        reference=nesting.reference,
        members=_sample(one, shared),
        validate=_validate(one),
        retries=True,
        aliases=(alias,),
        description=description,
    )


def _attribute(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    if name.startswith("resource."):
        return nesting.inside(context, resource, name, path)
    look = context.nested.look(context, resource)
    if look is None:
        return None
    wanted = _ALL.get(name, name)
    return {server: look.attribute(server, wanted, path) for server in look.names}


def _sample(
    one: ResourceType, shared: Mapping[str, Property]
) -> Callable[[Properties], Iterable[tuple[str, str, Properties]]]:
    def members(properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        servers = properties["servers"]
        if servers is UNKNOWN:
            return ()
        given = {key: properties[key] for key in shared if properties[key] is not None}
        return tuple((name, one.name, {**given, "server": id}) for name, id in list(servers.items())[:1])

    return members


def _validate(one: ResourceType) -> Callable[[Properties], None]:
    return lambda properties: one.validate({**properties, "server": UNKNOWN})
