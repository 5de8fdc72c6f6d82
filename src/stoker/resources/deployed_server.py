"""OS::Heat::DeployedServer: a machine that is there already."""

from __future__ import annotations

from typing import Any

from stoker.deployments.leaving import server_gone
from stoker.model.server import Kind, Server
from stoker.model.stack import Resource
from stoker.resources import governing, serving
from stoker.resources.base import DONE, Context, NoSuchAttribute, Outcome, Properties, ResourceType, physical_name
from stoker.resources.properties import Property
from stoker.resources.user_data import SOFTWARE_CONFIG
from stoker.store import documents, servers


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """An enrolled server of that name is that machine; otherwise a new id stands for it, as in Heat."""
    name = properties["name"] or physical_name(context, resource)
    if enrolled := _enrolled(context, name):
        had = serving.begin(context, resource, properties, enrolled.id, own_agent=True)
        governing.stand_for(context, resource, enrolled.id)
        said = governing.apply(context, resource, properties, enrolled.id)
        return Outcome(physical_id=enrolled.id, data={"name": name, "enrolled": True, "transports": had, **said})
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
    had = serving.begin(context, resource, properties, resource.id, own_agent=False)
    said = governing.apply(context, resource, properties, resource.id)
    return Outcome(physical_id=resource.id, data={"name": name, "enrolled": False, "transports": had, **said})


def _enrolled(context: Context, name: str) -> Server | None:
    found = [server for server in servers.named(context.tx, name, context.project_id) if server.kind is Kind.ENROLLED]
    return found[0] if found else None


def reached_by(context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
    enrolled = resource.data.get("enrolled")
    if enrolled is None:
        enrolled = _enrolled(context, properties["name"] or physical_name(context, resource)) is not None
    return serving.reached_by(context, properties, enrolled=enrolled)


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    name = properties["name"] or physical_name(context, resource)
    if resource.physical_id and not resource.data.get("enrolled"):
        servers.rename(context.tx, resource.physical_id, name)
    known = bool(resource.data.get("enrolled"))
    had = serving.begin(context, resource, properties, resource.physical_id or resource.id, own_agent=known)
    said = governing.apply(context, resource, properties, resource.physical_id or resource.id)
    return Outcome(data={**governing.without(resource.data), "name": name, "transports": had, **said})


def delete(context: Context, resource: Resource) -> Outcome:
    serving.end(context, resource)
    if resource.physical_id and not resource.data.get("enrolled"):
        server_gone(context.tx, context.services.work, resource.physical_id, resource.data.get("name") or resource.name)
        servers.delete(context.tx, resource.physical_id)
        documents.delete(context.tx, resource.physical_id)
    elif resource.physical_id:
        documents.carry(context.tx, resource.physical_id, None)
        governing.end(context, resource, resource.physical_id)
        context.tx.touch(resource.physical_id)  # it is there yet, but no longer this resource
    return DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name == "name":
        return resource.data.get("name")
    if name == "os_collect_config":
        return serving.collect_config(context, resource)
    if name == "user_data":
        return serving.user_data(context, resource, SOFTWARE_CONFIG, "")
    raise NoSuchAttribute(name)


TYPE = ResourceType(
    name="OS::Heat::DeployedServer",
    properties={
        "name": Property(kind="string", longest=255, update_allowed=True, description="Name of the machine."),
        "metadata": Property(kind="map", update_allowed=True, description="Ignored, as in Heat."),
        **serving.PROPERTIES,
    },
    attributes={
        "name": "Name of the machine.",
        "os_collect_config": "The agent's configuration.",
        "user_data": "What a machine has to boot with to be this server (Stoker's own).",
    },
    create=create,
    update=update,
    delete=delete,
    adopt=serving.adopt,
    exists=serving.exists,
    attribute=attribute,
    validate=serving.validate,
    live_metadata=serving.live_metadata,
    agents_transport="software_config_transport",
    reached_by=reached_by,
    description="A server that exists already.",
)
