"""
OS::Nova::Server: a server of the cloud, or a process on this machine.

With local servers (``ResourceEnv.compute``), the provider runs the server's process, and the id of the resource is the
server's. In a real cloud, the server gets Nova's id when Nova has created it; the user data, which is complete before,
refers to the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from stoker.model.server import Kind, Server
from stoker.model.stack import Action, Resource
from stoker.resources.base import (
    ADOPTED_NAME,
    DONE,
    AdoptionFailure,
    Context,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    physical_name,
)
from stoker.store import servers, stacks
from stoker.types import server_base, server_policy, server_types
from stoker.types.server_base import ServerType
from stoker_openstack.model import CloudAction, CloudKind
from stoker_openstack.types import nova_server_request
from stoker_openstack.types.cloud_base import (
    CloudType,
    adoption_outcome,
    observe,
)
from stoker_openstack.types.nova_server_schema import ATTRIBUTES, PROPERTIES, REBUILD, REPLACE, read_attribute

#: Keys of the resource's data: rebuilds for changed user data; whether the row of the server exists.
_REBUILDS, _REGISTERED = "rebuilds", "registered"


def _apply_policies(changed: set[str], properties: Properties) -> None:
    """Raise Replace if a changed property requires another server."""
    for name in ("flavor", "image", "user_data"):
        if name in changed and properties[f"{name}_update_policy"] == REPLACE:
            raise Replace(name)


def _registered(context: Context, resource: Resource, outcome: Outcome) -> Outcome:
    """Record the server under the id that Nova gave, once Nova has given one."""
    server_id = outcome.physical_id
    data = dict(resource.data if outcome.data is None else outcome.data)
    if server_id is None or data.get(_REGISTERED) or (resource.action is Action.ADOPT and not outcome.done):
        return outcome
    present = servers.find(context.tx, server_id)
    if present is not None and present.project_id != context.project_id:
        raise AdoptionFailure("server", server_id)
    if present is None:
        servers.add(
            context.tx,
            Server(
                id=server_id,
                project_id=context.project_id,
                name=data.get("name") or data.get(ADOPTED_NAME) or resource.name,
                kind=Kind.DEPLOYED,
                agent=resource.properties.get("agent"),
                stack_id=context.stack_id,
                resource_id=resource.id,
                resource_name=resource.name,
                created_at=context.tx.now,
            ),
        )
    else:
        server_base.link(context, resource, server_id)
    server_base.start_publishing(context, server_id, resource.id, data.get("transports") or [])
    policy_data = server_policy.apply(context, resource, resource.properties, server_id)
    return replace(outcome, data={**data, **policy_data, _REGISTERED: True})


def _require_for_boot(properties: Properties, name: str) -> None:
    """Raise ResourceFailure if a property is missing that Nova needs and local servers do not."""
    if not properties["flavor"]:
        raise ResourceFailure("Property flavor not assigned: a server of the cloud needs it.")
    if not properties["image"] and not nova_server_request.boots_from_volume(properties):
        raise ResourceFailure(f"Neither image nor bootable volume is specified for instance {name}")


class NovaServer(CloudType, ServerType):
    name = "OS::Nova::Server"
    description = "A server of the cloud."
    properties = PROPERTIES
    attributes = ATTRIBUTES
    kind = CloudKind.SERVER
    actions = {
        Action.SUSPEND: CloudAction.SUSPEND,
        Action.RESUME: CloudAction.RESUME,
        Action.CHECK: CloudAction.CHECK,
        Action.SNAPSHOT: CloudAction.SNAPSHOT,
    }

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the server. A retry continues with the server of the earlier attempt, unless that server is broken."""
        name = properties["name"] or physical_name(context, resource, server_types.LONGEST_NAME)
        if context.env.compute is not None:
            if not resource.physical_id:
                self._request(context, replace(resource, data={"name": name}), properties, CloudAction.ENSURE)
            return server_types.create(context, resource, properties)
        self.refuse_broken(context, resource)
        _require_for_boot(properties, name)
        had = server_base.open_transports(context, resource, properties, own_agent=False)
        data = {**resource.data, "name": name, "transports": had, "enrolled": False, server_base.BOOT_ID: resource.id}
        prepared = replace(resource, data=data, properties=properties)
        outcome = self._request(context, prepared, properties, CloudAction.ENSURE)
        return _registered(context, prepared, replace(outcome, data=data))

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change the server. Raises Replace if an update policy requires a new one."""
        changed = {name for name, value in properties.items() if resource.properties.get(name) != value}
        _apply_policies(changed, properties)
        data = server_types.change(context, resource, properties, own_agent=context.env.compute is not None)
        if "user_data" in changed and properties["user_data_update_policy"] == REBUILD:
            data[_REBUILDS] = data.get(_REBUILDS, 0) + 1
        acted = replace(resource, data=data, properties=properties)
        return replace(self._request(context, acted, properties, CloudAction.ENSURE), data=data)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Delete the server; done when the cloud no longer has it."""
        server_types.remove(context, resource)
        return super().delete(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Return the state of the action in progress. The first check after Nova made the server records the server."""
        if context.env.compute is not None:
            return DONE  # the process runs, or continues to run
        outcome = super().check(context, resource)
        return outcome if resource.action is Action.DELETE else _registered(context, resource, outcome)

    def retain(self, context: Context, resource: Resource) -> None:
        """Release the server from its stack."""
        ServerType.retain(self, context, resource)
        super().retain(context, resource)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take over a server that another stack abandoned, or any server of the cloud."""
        if context.env.compute is not None:
            outcome = ServerType.adopt(self, context, resource, properties)
            self._request(context, resource, properties, CloudAction.ADOPT, external_id=resource.physical_id)
            return outcome
        had = server_base.open_transports(context, resource, properties, own_agent=False)
        data = {**resource.data, "transports": had, "enrolled": False}
        data.pop(_REGISTERED, None)
        acted = replace(resource, data=data, properties=properties)
        outcome = self._request(context, acted, properties, CloudAction.ADOPT, external_id=resource.physical_id)
        return _registered(context, acted, replace(outcome, data={**data, **(outcome.data or {})}))

    def refer(self, context: Context, resource: Resource) -> Outcome:
        """Refer to a server that the stack neither changes nor deletes. Raises EntityNotFound for local ones only."""
        if context.env.compute is None:
            return super().refer(context, resource)
        return ServerType.refer(self, context, resource)

    def restored(self, saved: Mapping[str, Any]) -> Properties:
        return {"image": saved["snapshot_image_id"]}

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name in server_types.OWN_ATTRIBUTES:
            return server_types.own_attribute(context, resource, name)
        if name == "name":
            return resource.data.get("name") or observe(context, resource).get("name")
        if name == "tags":  # no part of the representation in the microversion of all requests
            return observe(context, resource).get(name) or resource.properties.get(name) or []
        return read_attribute(observe(context, resource), name)

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        server_policy.validate(properties)
        nova_server_request.validate(properties)

    def reached_by(self, context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
        return server_base.reached_by(context, properties, local=context.env.compute is not None)

    def _request(
        self,
        context: Context,
        resource: Resource,
        properties: Properties,
        action: CloudAction,
        external_id: str | None = None,
    ) -> Outcome:
        """Send the specification to the cloud. A local server's process does not read user data."""
        is_local = context.env.compute is not None
        specification = nova_server_request.specify(
            resource.data.get("name")
            or properties["name"]
            or physical_name(context, resource, server_types.LONGEST_NAME),
            properties,
            user_data="" if is_local else server_types.user_data(context, resource, properties),
            rebuilds=resource.data.get(_REBUILDS, 0),
        )
        if not is_local:
            types = stacks.derive_from_source(context.tx, context.stack_id, nova_server_request.console_types)
            specification["stoker:console_types"] = types
        requested = self.request(context, resource, action, specification, external_id=external_id)
        return adoption_outcome(resource, requested)
