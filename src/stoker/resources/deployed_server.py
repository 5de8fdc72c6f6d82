"""OS::Heat::DeployedServer: a machine that is there already."""

from __future__ import annotations

from typing import Any

from stoker.model.server import Kind, Server
from stoker.model.stack import Resource
from stoker.resources import serving
from stoker.resources.base import DONE, Context, NoSuchAttribute, Outcome, Properties, ResourceType, physical_name
from stoker.resources.properties import Property
from stoker.store import documents, servers


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """An enrolled server of that name is that machine; otherwise a new id stands for it, as in Heat."""
    name = properties["name"] or physical_name(context, resource)
    if enrolled := _enrolled(context, name):
        serving.begin(context, resource, properties, enrolled.id)
        return Outcome(physical_id=enrolled.id, data={"name": name, "enrolled": True})
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
    serving.begin(context, resource, properties, resource.id)
    return Outcome(physical_id=resource.id, data={"name": name, "enrolled": False})


def _enrolled(context: Context, name: str) -> Server | None:
    found = [server for server in servers.named(context.tx, name, context.project_id) if server.kind is Kind.ENROLLED]
    return found[0] if found else None


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    name = properties["name"] or physical_name(context, resource)
    if resource.physical_id and not resource.data.get("enrolled"):
        servers.rename(context.tx, resource.physical_id, name)
    return Outcome(data={**resource.data, "name": name, "transports": serving.change(context, resource, properties)})


def delete(context: Context, resource: Resource) -> Outcome:
    serving.end(context, resource, resource.properties)
    if resource.physical_id and not resource.data.get("enrolled"):
        servers.delete(context.tx, resource.physical_id)
        documents.delete(context.tx, resource.physical_id)
    elif resource.physical_id:
        documents.carry(context.tx, resource.physical_id, None)
        context.tx.touch(resource.physical_id)  # it is there yet, but no longer this resource
    return DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name == "name":
        return resource.data.get("name")
    if name == "os_collect_config":
        return serving.collect_config(context, resource)
    raise NoSuchAttribute(name)


TYPE = ResourceType(
    name="OS::Heat::DeployedServer",
    properties={
        "name": Property(kind="string", longest=255, update_allowed=True, description="Name of the machine."),
        "metadata": Property(kind="map", update_allowed=True, description="Ignored, as in Heat."),
        **serving.PROPERTIES,
    },
    attributes={"name": "Name of the machine.", "os_collect_config": "The agent's configuration."},
    create=create,
    update=update,
    delete=delete,
    adopt=serving.adopt,
    exists=serving.exists,
    attribute=attribute,
    validate=serving.validate,
    live_metadata=serving.live_metadata,
    agents_transport="software_config_transport",
    description="A server that exists already.",
)
