"""What SoftwareDeploymentGroup and StructuredDeploymentGroup share: one deployment for every server of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot import UNKNOWN, select
from stoker.model.stack import Resource
from stoker.resources import batches, nesting, selecting
from stoker.resources.base import Context, Outcome, Properties, ResourceType
from stoker.resources.batches import CAREFUL
from stoker.resources.grouping import Group
from stoker.resources.properties import Property, PropertyError
from stoker.resources.rolling import Members, clash

_WHICH: Mapping[str, Property] = {
    "servers": Property(
        kind="map", update_allowed=True, description="Ids of servers by names, which name the deployments."
    ),
    "labels": Property(
        kind="map",
        update_allowed=True,
        description="Instead of servers: it is of whatever servers have all these labels (Stoker's own).",
    ),
}
#: The attribute that says which members failed, and why.
_FAILED = "failed_members"
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

    def members(resource: Resource, properties: Properties) -> Members:
        given = {key: properties[key] for key in shared if properties[key] is not None}
        return {
            server: {"type": one.name, "properties": {**given, "server": id}}
            for server, id in selecting.members(resource, properties).items()
        }

    many = _Many(Group(members, batches.schema(CAREFUL, CAREFUL)))
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
        exists=nesting.exists,
        cancel=nesting.cancel,
        is_stale=nesting.is_stale,
        actions=nesting.ACTIONS,
        attribute_at=_attribute,
        reference=nesting.reference,
        members=_sample(one, shared),
        validate=_validate(one),
        retries=True,
        aliases=(alias,),
        description=description,
    )


@dataclass(frozen=True, slots=True)
class _Many:
    """A group whose members are servers: those that are named, or those that have its labels."""

    group: Group

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.group.create(context, selecting.choose(context, resource, properties), properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.group.update(context, selecting.choose(context, resource, properties), properties)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.group.adopt(context, selecting.choose(context, resource, properties), properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        selecting.forget(context, resource)
        return nesting.delete(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        outcome = self.group.check(context, resource)
        if outcome.done:
            selecting.look_again(context, resource)
        return outcome

    def check_policy(self, policy: Any, properties: Properties) -> None:
        """Raises PropertyError, also for a server that has the name of another one's health."""
        self.group.check_policy(policy, properties)
        servers = properties["servers"]
        if servers in (None, UNKNOWN) or not isinstance(policy, Mapping):
            return
        for name, said in policy.items():
            if isinstance(said, Mapping) and said.get("health_check") is not None and (taken := clash(servers)):
                problem = f"the health of a server would have the name of the server {taken!r}: name that one otherwise"
                raise PropertyError((name, "health_check"), problem)


def _attribute(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    if name.startswith("resource."):
        return nesting.inside(context, resource, name, path)
    look = context.nested.look(context, resource)
    if look is None:
        return None
    if name == _FAILED:
        return select(dict(resource.data.get("failed") or {}), path)
    wanted = _ALL.get(name, name)
    asked = selecting.members(resource, resource.properties)
    return {server: look.attribute(server, wanted, path) for server in look.names if server in asked}


def _sample(
    one: ResourceType, shared: Mapping[str, Property]
) -> Callable[[Properties], Iterable[tuple[str, str, Properties]]]:
    def members(properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        servers = properties["servers"]
        if servers is UNKNOWN:
            return ()
        some = {"any": UNKNOWN} if servers is None else dict(list(servers.items())[:1])
        given = {key: properties[key] for key in shared if properties[key] is not None}
        return tuple((name, one.name, {**given, "server": id}) for name, id in some.items())

    return members


def _validate(one: ResourceType) -> Callable[[Properties], None]:
    def validate(properties: Properties) -> None:
        one.validate({**properties, "server": UNKNOWN})
        selecting.validate(properties)

    return validate
