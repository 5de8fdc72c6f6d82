"""OS::Nova::Server: a server that the compute provider creates."""

from __future__ import annotations

from typing import Any

from stoker.deployments.server_removal import release_server
from stoker.model.server import Owner
from stoker.model.stack import Resource
from stoker.resources import server_base, server_policy
from stoker.resources.base import (
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Kind, Property
from stoker.resources.user_data import FORMATS, SOFTWARE_CONFIG
from stoker.store import documents, servers

#: Nova's limit of a server name in characters.
_NAME = 53
_NO_COMPUTE = (
    "no compute provider is enabled: use OS::Heat::DeployedServer, or, for development, start Stoker with"
    " --local-servers-unsafe"
)
#: Properties of valid templates that the local provider ignores.
_IGNORED: dict[str, Kind] = {
    "image": "any",
    "flavor": "any",
    "flavor_update_policy": "string",
    "image_update_policy": "string",
    "key_name": "string",
    "networks": "list",
    "security_groups": "list",
    "availability_zone": "string",
    "admin_pass": "string",
    "config_drive": "boolean",
    "block_device_mapping": "list",
    "block_device_mapping_v2": "list",
    "scheduler_hints": "map",
    "personality": "map",
    "diskConfig": "string",
    "tags": "list",
    "reservation_id": "string",
}


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    if context.env.compute is None:
        raise ResourceFailure(_NO_COMPUTE)
    name = properties["name"] or physical_name(context, resource, _NAME)
    owner = Owner(context.stack_id, resource.id, resource.name)
    context.env.compute.create(context.tx, server_id=resource.id, project_id=context.project_id, name=name, owner=owner)
    had = server_base.begin(context, resource, properties, resource.id, own_agent=True)
    policy_data = server_policy.apply(context, resource, properties, resource.id)
    return Outcome(done=False, physical_id=resource.id, data={"name": name, "transports": had, **policy_data})


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    name = properties["name"] or resource.data.get("name")
    if resource.physical_id and name:
        servers.rename(context.tx, resource.physical_id, name)
    had = server_base.begin(context, resource, properties, resource.id, own_agent=True)
    policy_data = server_policy.apply(context, resource, properties, resource.id)
    return Outcome(data={**server_policy.without(resource.data), "name": name, "transports": had, **policy_data})


def delete(context: Context, resource: Resource) -> Outcome:
    if resource.physical_id:
        if context.env.compute is None:
            raise ResourceFailure(_NO_COMPUTE)
        server_base.end(context, resource)
        release_server(context.tx, context.env.work, resource.physical_id, resource.name)
        context.env.compute.delete(context.tx, resource.physical_id)
        documents.delete(context.tx, resource.physical_id)
    return DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name == "os_collect_config":
        return server_base.collect_config(context, resource)
    if name == "user_data":
        properties = resource.properties
        return server_base.user_data(
            context, resource, properties.get("user_data_format") or "", properties.get("user_data") or ""
        )
    if name in ("name", "instance_name"):
        return resource.data.get("name")
    if name == "console_urls":
        return {}
    if name in ("os", "facts"):
        return server_base.fact_attribute(context, resource, name)
    compute = context.env.compute
    address = compute.address(resource.id) if compute else ""
    network = {"version": 4, "addr": address}
    try:
        return {
            "address": address,
            "first_address": address,
            "accessIPv4": address,
            "accessIPv6": "",
            "addresses": {"local": [network]},
            "networks": {"local": [address]},
            "tags": [],
        }[name]
    except KeyError:
        raise NoSuchAttribute(name) from None


TYPE = ResourceType(
    name="OS::Nova::Server",
    properties={
        "name": Property(kind="string", longest=255, update_allowed=True, description="Name of the server."),
        "metadata": Property(kind="map", update_allowed=True, description="Key and value pairs for the server."),
        "user_data": Property(kind="string", default="", update_allowed=True, description="Data for the boot."),
        "user_data_format": Property(
            kind="string",
            default=SOFTWARE_CONFIG,
            allowed=FORMATS,
            description="How user data is made up; deployments need SOFTWARE_CONFIG.",
        ),
        "user_data_update_policy": Property(
            kind="string", default="REPLACE", update_allowed=True, allowed=("REPLACE", "IGNORE", "REBUILD")
        ),
        **server_base.PROPERTIES,
        **{
            name: Property(kind=kind, update_allowed=True, description="Not used by the local provider.")
            for name, kind in _IGNORED.items()
        },
    },
    attributes={
        "name": "Name of the server.",
        "instance_name": "Name of the server.",
        "first_address": "The address other servers reach it at.",
        "address": "The same (Stoker's own).",
        **{name: server_base.FACT_ATTRIBUTES[name] for name in ("os", "facts")},
        "accessIPv4": "The same.",
        "accessIPv6": "None on the local provider.",
        "addresses": "Addresses by network.",
        "networks": "Addresses by network, as plain lists.",
        "tags": "None on the local provider.",
        "console_urls": "None on the local provider.",
        "os_collect_config": "The agent's configuration.",
        "user_data": "What such a server boots with elsewhere (Stoker's own).",
    },
    create=create,
    update=update,
    delete=delete,
    retain=server_base.retain,
    adopt=server_base.adopt,
    exists=server_base.exists,
    attribute=attribute,
    validate=server_policy.validate,
    live_metadata=server_base.live_metadata,
    agents_transport="software_config_transport",
    reached_by=lambda context, _resource, properties: server_base.reached_by(context, properties, local=True),
    description="A server of the compute provider.",
)
