"""
OS::Nova::Server: a server of the cloud, or a process on this machine.

With local servers (``ResourceEnv.compute``), the provider runs the server's process, and the id of the resource is the
server's. In a real cloud, the server gets Nova's id when Nova has created it; the user data, which is complete before,
refers to the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from stoker.deployments.server_removal import release_server
from stoker.model.cloud import CloudAction, CloudKind
from stoker.model.errors import EntityNotFound
from stoker.model.server import Kind, Owner, Server
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources import nova_server_attributes, nova_server_request, server_base, server_policy
from stoker.resources.base import (
    ADOPTED_NAME,
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.cloud_base import (
    NO_CLOUD,
    CloudActions,
    adoption_outcome,
    is_broken,
    observe,
    require_cloud,
)
from stoker.resources.nova_server_schema import ATTRIBUTES, PROPERTIES, REBUILD, REPLACE
from stoker.servers.compute import Compute
from stoker.store import documents, servers, stacks

#: Nova's limit of a server name in characters.
_NAME = 53
#: Keys of the resource's data: rebuilds for changed user data; whether the row of the server exists.
_REBUILDS, _REGISTERED = "rebuilds", "registered"


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """Create the server. A retry continues with the server of the earlier attempt, unless that server is broken."""
    name = properties["name"] or physical_name(context, resource, _NAME)
    if context.env.compute is not None:
        return _create_local(context, context.env.compute, resource, properties, name)
    cloud = require_cloud(context)
    if resource.physical_id and is_broken(cloud.find(context.tx, resource.id)):
        raise Replace(resource.name)
    _require_for_boot(properties, name)
    had = server_base.open_transports(context, resource, properties, own_agent=False)
    data = {**resource.data, "name": name, "transports": had, "enrolled": False, server_base.BOOT_ID: resource.id}
    prepared = replace(resource, data=data, properties=properties)
    outcome = _request(context, prepared, properties, CloudAction.ENSURE)
    return _registered(context, prepared, replace(outcome, data=data))


def _create_local(context: Context, compute: Compute, resource: Resource, properties: Properties, name: str) -> Outcome:
    if resource.physical_id:
        raise Replace(resource.name)  # an earlier attempt failed: start with another process
    data = {"name": name}
    if context.env.cloud is not None:
        _request(context, replace(resource, data=data), properties, CloudAction.ENSURE)
    owner = Owner(context.stack_id, resource.id, resource.name)
    compute.create(context.tx, server_id=resource.id, project_id=context.project_id, name=name, owner=owner)
    had = server_base.begin(context, resource, properties, resource.id, own_agent=True)
    policy_data = server_policy.apply(context, resource, properties, resource.id)
    return Outcome(done=False, physical_id=resource.id, data={**data, "transports": had, **policy_data})


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """Change the server. Raises Replace if an update policy requires a new one."""
    changed = {name for name, value in properties.items() if resource.properties.get(name) != value}
    _apply_policies(changed, properties)
    is_local = context.env.compute is not None
    server_id = resource.physical_id or resource.id
    name = properties["name"] or resource.data.get("name") or physical_name(context, resource, _NAME)
    servers.rename(context.tx, server_id, name)
    had = server_base.begin(context, resource, properties, server_id, own_agent=is_local)
    policy_data = server_policy.apply(context, resource, properties, server_id)
    data = {**server_policy.without(resource.data), "name": name, "transports": had, **policy_data}
    if "user_data" in changed and properties["user_data_update_policy"] == REBUILD:
        data[_REBUILDS] = data.get(_REBUILDS, 0) + 1
    if context.env.cloud is None:
        return Outcome(data=data)
    acted = replace(resource, data=data, properties=properties)
    return replace(_request(context, acted, properties, CloudAction.ENSURE), data=data)


def _apply_policies(changed: set[str], properties: Properties) -> None:
    """Raise Replace if a changed property requires another server."""
    for name in ("flavor", "image", "user_data"):
        if name in changed and properties[f"{name}_update_policy"] == REPLACE:
            raise Replace(name)


def delete(context: Context, resource: Resource) -> Outcome:
    """Delete the server; done when the cloud no longer has it."""
    if not resource.physical_id and context.env.cloud is None:
        return DONE
    server_id = resource.physical_id or resource.id
    server_base.end(context, resource)
    release_server(context.tx, context.env.work, server_id, resource.name)
    if context.env.compute is not None:
        context.env.compute.delete(context.tx, server_id)
    else:
        _delete_record(context, server_id)
    documents.delete(context.tx, server_id)
    return _ACTIONS.delete(context, resource)


def _delete_record(context: Context, server_id: str) -> None:
    """Delete the row of a server. Raises ResourceFailure if only the missing local provider can delete the server."""
    server = servers.find(context.tx, server_id)
    if server is not None and server.kind is Kind.LOCAL:
        raise ResourceFailure(NO_CLOUD)
    servers.delete(context.tx, server_id)


def check(context: Context, resource: Resource) -> Outcome:
    """Return the state of the action in progress. The first check after Nova created the server records the server."""
    if context.env.compute is not None:
        return DONE  # the process runs, or continues to run
    outcome = _ACTIONS.check(context, resource)
    return outcome if resource.action is Action.DELETE else _registered(context, resource, outcome)


def _registered(context: Context, resource: Resource, outcome: Outcome) -> Outcome:
    """Record the server under the id that Nova gave, once Nova has given one."""
    server_id = outcome.physical_id
    data = dict(resource.data if outcome.data is None else outcome.data)
    if server_id is None or data.get(_REGISTERED) or (resource.action is Action.ADOPT and not outcome.done):
        return outcome
    present = servers.find(context.tx, server_id)
    if present is not None and present.project_id != context.project_id:
        raise ResourceFailure(f"The server ({server_id}) is not there to be adopted.")
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
        servers.relink(context.tx, server_id, context.stack_id, resource.id, resource.name)
    server_base.start_publishing(context, server_id, resource.id, data.get("transports") or [])
    policy_data = server_policy.apply(context, resource, resource.properties, server_id)
    return replace(outcome, data={**data, **policy_data, _REGISTERED: True})


def adopt(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """Take over a server that another stack abandoned, or any server of the cloud."""
    cloud = context.env.cloud
    if context.env.compute is not None:
        outcome = server_base.adopt(context, resource, properties)
        if cloud is not None:
            _request(context, resource, properties, CloudAction.ADOPT, external_id=resource.physical_id)
        return outcome
    had = server_base.open_transports(context, resource, properties, own_agent=False)
    data = {**resource.data, "transports": had, "enrolled": False}
    data.pop(_REGISTERED, None)
    acted = replace(resource, data=data, properties=properties)
    outcome = _request(context, acted, properties, CloudAction.ADOPT, external_id=resource.physical_id)
    return _registered(context, acted, replace(outcome, data={**data, **(outcome.data or {})}))


def refer(context: Context, resource: Resource) -> Outcome:
    """Refer to a server that the stack neither changes nor deletes. Raises EntityNotFound for local servers only."""
    if context.env.compute is None:
        return _ACTIONS.refer(context, resource)
    if not server_base.exists(context, resource.physical_id or ""):
        raise EntityNotFound(f"The {resource.type} ({resource.physical_id}) could not be found.")
    return DONE


def retain(context: Context, resource: Resource) -> None:
    """Release the server from its stack."""
    server_base.retain(context, resource)
    _ACTIONS.retain(context, resource)


def act(action: CloudAction, context: Context, resource: Resource) -> Outcome:
    """Suspend, resume, check or save the server. A local provider without a cloud has no such actions."""
    return _ACTIONS.act(action, context, resource) if context.env.cloud is not None else DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name == "os_collect_config":
        return server_base.collect_config(context, resource)
    if name == "user_data":
        return _user_data(context, resource, resource.properties)
    if name in ("os", "facts"):
        return server_base.fact_attribute(context, resource, name)
    if name not in ATTRIBUTES:
        raise NoSuchAttribute(name)
    if name == "name":
        return resource.data.get("name") or observe(context, resource).get("name")
    if name == "tags":  # no part of the representation in the microversion of all requests
        return observe(context, resource).get(name) or resource.properties.get(name) or []
    return nova_server_attributes.read(_representation(context, resource), name)


def _representation(context: Context, resource: Resource) -> Mapping[str, Any]:
    """Return Nova's representation. A provider without a cloud knows only the address."""
    if context.env.cloud is not None or context.env.compute is None:
        return observe(context, resource)
    address = {"version": 4, "addr": context.env.compute.address(resource.physical_id or resource.id)}
    return {"addresses": {"local": [address]}, "OS-EXT-SRV-ATTR:instance_name": resource.data.get("name")}


def _request(
    context: Context,
    resource: Resource,
    properties: Properties,
    action: CloudAction,
    external_id: str | None = None,
) -> Outcome:
    """Send the specification to the cloud. A local server's process does not read user data."""
    is_local = context.env.compute is not None
    specification = nova_server_request.specify(
        resource.data.get("name") or properties["name"] or physical_name(context, resource, _NAME),
        properties,
        user_data="" if is_local else _user_data(context, resource, properties),
        rebuilds=resource.data.get(_REBUILDS, 0),
    )
    if not is_local:
        types = stacks.derive_from_source(context.tx, context.stack_id, nova_server_request.console_types)
        specification["stoker:console_types"] = types
    requested = _ACTIONS.request(context, resource, action, specification, external_id=external_id)
    return adoption_outcome(resource, requested)


def _user_data(context: Context, resource: Resource, properties: Properties) -> str:
    format, text = properties.get("user_data_format") or "", properties.get("user_data") or ""
    return server_base.user_data(context, resource, format, text)


def _require_for_boot(properties: Properties, name: str) -> None:
    """Raise ResourceFailure if a property is missing that Nova needs and local servers do not."""
    if not properties["flavor"]:
        raise ResourceFailure("Property flavor not assigned: a server of the cloud needs it.")
    if not properties["image"] and not nova_server_request.boots_from_volume(properties):
        raise ResourceFailure(f"Neither image nor bootable volume is specified for instance {name}")


def validate(properties: Properties) -> None:
    """Raise StackValidationFailed for properties that contradict each other."""
    server_policy.validate(properties)
    nova_server_request.validate(properties)


def reached_by(context: Context, _resource: Resource, properties: Properties) -> tuple[str, bool]:
    return server_base.reached_by(context, properties, local=context.env.compute is not None)


_ACTIONS = CloudActions(CloudKind.SERVER, lambda _context, _resource, _properties: {})

TYPE = ResourceType(
    name="OS::Nova::Server",
    properties=PROPERTIES,
    attributes=ATTRIBUTES,
    create=create,
    update=update,
    delete=delete,
    check=check,
    retain=retain,
    adopt=adopt,
    refer=refer,
    stop_referring=_ACTIONS.retain,
    saved=_ACTIONS.saved,
    restored=lambda saved: {"image": saved["snapshot_image_id"]},
    delete_saved=_ACTIONS.delete_saved,
    attribute=attribute,
    show=observe,
    validate=validate,
    retries=True,
    needs_cloud=True,
    id_constraint="nova.server",
    actions={
        Action.SUSPEND: partial(act, CloudAction.SUSPEND),
        Action.RESUME: partial(act, CloudAction.RESUME),
        Action.CHECK: partial(act, CloudAction.CHECK),
        Action.SNAPSHOT: partial(act, CloudAction.SNAPSHOT),
    },
    live_metadata=server_base.live_metadata,
    agents_transport="software_config_transport",
    reached_by=reached_by,
    description="A server of the cloud.",
)
