"""
Types of servers: OS::Heat::DeployedServer, an existing machine, and OS::Nova::Server on a site without a cloud, a
server of the local provider (``ResourceEnv.compute``).

The id of a local server's resource is the server's. Properties that only a cloud can honor have no effect, so that
templates for a cloud run unchanged. The provider of a cloud replaces this type by its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments.server_runs import release_server
from stoker.model.server import Kind, Server, ServerOwner
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    Context,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    physical_name,
)
from stoker.resources.properties import Property
from stoker.servers.compute import Compute
from stoker.store import documents, servers
from stoker.types import server_base, server_policy
from stoker.types.server_base import ServerType
from stoker.types.user_data import FORMATS, SOFTWARE_CONFIG

#: Nova's limit of a server name in characters.
LONGEST_NAME = 53
NO_PROVIDER = (
    "no local servers are enabled, and no cloud is installed: start Stoker with --local-servers-unsafe for development,"
    " or install plugins/openstack from Stoker's source"
)


def require_compute(context: Context) -> Compute:
    """Return the local provider. Raises ResourceFailure if there is none."""
    if context.env.compute is None:
        raise ResourceFailure(NO_PROVIDER)
    return context.env.compute


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """Create the server. A retry starts with another process."""
    compute = require_compute(context)
    if resource.physical_id:
        raise Replace(resource.name)
    name = properties["name"] or physical_name(context, resource, LONGEST_NAME)
    owner = ServerOwner(context.stack_id, resource.id, resource.name)
    compute.create(context.tx, server_id=resource.id, project_id=context.project_id, name=name, owner=owner)
    settings = server_base.configure(context, resource, properties, resource.id, own_agent=True)
    return Outcome(done=False, physical_id=resource.id, data={"name": name, **settings})


def change(context: Context, resource: Resource, properties: Properties, *, own_agent: bool) -> dict[str, Any]:
    """Change what Stoker knows of a server; return the resource's data."""
    server_id = resource.physical_id or resource.id
    name = properties["name"] or resource.data.get("name") or physical_name(context, resource, LONGEST_NAME)
    servers.change(context.tx, server_id, name=name)
    settings = server_base.configure(context, resource, properties, server_id, own_agent=own_agent)
    return {**server_policy.without(resource.data), "name": name, **settings}


def remove(context: Context, resource: Resource) -> None:
    """Remove the server's record with its process, if any. Raises ResourceFailure as ``delete`` does."""
    server_id = resource.physical_id or resource.id
    server = servers.find(context.tx, server_id)
    server_base.end(context, resource)
    release_server(context.tx, context.env.work, server_id, resource.data.get("name") or resource.name)
    if server is not None and server.kind is not Kind.LOCAL:
        servers.delete(context.tx, server_id)
    elif server is not None or context.env.compute is not None:
        require_compute(context).delete(context.tx, server_id)
    documents.delete(context.tx, server_id)


def own_attribute(context: Context, resource: Resource, name: str) -> Any:
    """Return an attribute of ``OWN_ATTRIBUTES``, which no provider of servers knows."""
    if name == "os_collect_config":
        return server_base.collect_config(context, resource)
    if name == "user_data":
        return user_data(context, resource, resource.properties)
    return server_base.fact_attribute(context, resource, name)


def user_data(context: Context, resource: Resource, properties: Properties) -> str:
    """Return the data with which the server boots."""
    format, text = properties.get("user_data_format") or "", properties.get("user_data") or ""
    return server_base.user_data(context, resource, format, text)


OWN_ATTRIBUTES: Mapping[str, str] = {
    "os_collect_config": "The agent's configuration.",
    "user_data": "What the server boots with (Stoker's own).",
    **{name: server_base.FACT_ATTRIBUTES[name] for name in ("os", "facts")},
}
_EMPTY: Mapping[str, Any] = {"accessIPv4": "", "accessIPv6": "", "console_urls": {}}
#: Properties without effect, and whether an update may change them in place.
_IGNORED = {
    **dict.fromkeys(
        (
            "image", "flavor", "flavor_update_policy", "image_update_policy", "admin_pass", "networks", "metadata",
            "tags", "user_data_update_policy",
        ),
        True,
    ),
    **dict.fromkeys(
        (
            "key_name", "admin_user", "availability_zone", "security_groups", "block_device_mapping",
            "block_device_mapping_v2", "scheduler_hints", "config_drive", "diskConfig", "personality",
            "reservation_id",
        ),
        False,
    ),
}  # fmt: skip

PROPERTIES: Mapping[str, Property] = {
    "name": Property(
        kind="string",
        longest=255,
        update_allowed=True,
        description="Name; by default stack, resource and a short id.",
    ),
    "user_data": Property(
        kind="string",
        default="",
        update_allowed=True,
        description="Data for the boot, or the id of a config with the data; local servers do not read it.",
    ),
    "user_data_format": Property(
        kind="string",
        default=SOFTWARE_CONFIG,
        allowed=FORMATS,
        description="How user data is made up; deployments need SOFTWARE_CONFIG.",
    ),
    **{
        name: Property(kind="any", update_allowed=update_allowed, description="Without effect for a local server.")
        for name, update_allowed in _IGNORED.items()
    },
    **server_base.PROPERTIES,
}


class LocalServer(ServerType):
    name = "OS::Nova::Server"
    description = "A server: an agent's process on the machine of Stoker."
    properties = PROPERTIES
    attributes = {
        "name": "Name of the server.",
        "instance_name": "The same.",
        "address": "Address of the server (Stoker's own).",
        "first_address": "The same.",
        "networks": "Addresses by network, as plain lists.",
        "addresses": "Addresses by network.",
        "accessIPv4": "Empty for a local server.",
        "accessIPv6": "Empty for a local server.",
        "console_urls": "Empty for a local server.",
        "tags": "Tags of the server.",
        **OWN_ATTRIBUTES,
    }
    retries = True
    needs_provider = NO_PROVIDER

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return create(context, resource, properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change name, transport, labels and policy. Raises Replace if changed user data requires another server."""
        if properties["user_data"] != resource.properties.get("user_data"):
            raise Replace("user_data")
        return Outcome(data=change(context, resource, properties, own_agent=True))

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Delete the server. Raises ResourceFailure if the provider that runs its process is missing."""
        if resource.physical_id:
            remove(context, resource)
        return DONE

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name in OWN_ATTRIBUTES:
            return own_attribute(context, resource, name)
        if name in ("name", "instance_name"):
            return resource.data.get("name")
        if name == "tags":
            return resource.properties.get("tags") or []
        address = context.env.compute.address(resource.physical_id or resource.id) if context.env.compute else ""
        places: Mapping[str, Any] = {
            "first_address": address,
            "address": address,
            "networks": {"local": [address]},
            "addresses": {"local": [{"version": 4, "addr": address}]},
            **_EMPTY,
        }
        return places[name]

    def reached_by(self, context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
        return server_base.reached_by(context, properties, local=True)


class DeployedServer(ServerType):
    name = "OS::Heat::DeployedServer"
    description = "A server that exists already."
    may_be_enrolled = True
    properties = {
        "name": Property(kind="string", longest=255, update_allowed=True, description="Name of the machine."),
        "metadata": Property(kind="map", update_allowed=True, description="Ignored, as in Heat."),
        **server_base.PROPERTIES,
    }
    attributes = {
        "name": "Name of the machine.",
        "os_collect_config": "The agent's configuration.",
        "user_data": "What a machine has to boot with to be this server (Stoker's own).",
        **server_base.FACT_ATTRIBUTES,
    }

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """
        Represent the project's enrolled server of this name. If there is none, record a new server, as in Heat.

        Raises Conflict if a machine gave itself the name.
        """
        name = properties["name"] or physical_name(context, resource)
        if enrolled := servers.find_enrolled(context.tx, name, context.project_id):
            settings = server_base.configure(context, resource, properties, enrolled.id, own_agent=True)
            return Outcome(physical_id=enrolled.id, data={"name": name, "enrolled": True, **settings})
        servers.refuse_self_named(context.tx, name, context.project_id)
        servers.add(
            context.tx,
            Server(
                id=resource.id,
                project_id=context.project_id,
                name=name,
                kind=Kind.DEPLOYED,
                stack_id=context.stack_id,
                resource_id=resource.id,
                resource_name=resource.name,
                created_at=context.tx.now,
            ),
        )
        settings = server_base.configure(context, resource, properties, resource.id, own_agent=False)
        return Outcome(physical_id=resource.id, data={"name": name, "enrolled": False, **settings})

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        name, server_id = properties["name"] or physical_name(context, resource), resource.physical_id or resource.id
        is_enrolled = bool(resource.data.get("enrolled"))
        if resource.physical_id and not is_enrolled:
            servers.change(context.tx, server_id, name=name)
        settings = server_base.configure(context, resource, properties, server_id, own_agent=is_enrolled)
        return Outcome(data={**server_policy.without(resource.data), "name": name, **settings})

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if resource.physical_id and not resource.data.get("enrolled"):
            remove(context, resource)
        else:
            self.retain(context, resource)
        return DONE

    def is_stale(self, context: Context, resource: Resource) -> bool:
        """Return whether the machine that the resource represents was removed, and another one has its name."""
        if not resource.data.get("enrolled") or servers.find(context.tx, resource.physical_id or "") is not None:
            return False
        return servers.find_enrolled(context.tx, str(resource.data.get("name")), context.project_id) is not None

    def must_replace(self, context: Context, resource: Resource, properties: Properties) -> bool:
        """Return whether the name means another machine than before."""
        named = properties["name"]
        if not resource.physical_id or not isinstance(named, str):
            return False
        enrolled = servers.find_enrolled(context.tx, named, context.project_id)
        represented = resource.physical_id if resource.data.get("enrolled") else None
        return (enrolled.id if enrolled else None) != represented

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name == "name":
            return resource.data.get("name")
        return own_attribute(context, resource, name)

    def reached_by(self, context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
        enrolled = resource.data.get("enrolled")
        if enrolled is None:
            name = properties["name"] or physical_name(context, resource)
            enrolled = servers.find_enrolled(context.tx, name, context.project_id) is not None
        return server_base.reached_by(context, properties, enrolled=enrolled)
