"""OS::Heat::DeployedServer: an existing machine."""

from __future__ import annotations

from typing import Any

from stoker.deployments.server_runs import release_server
from stoker.model.server import Kind, Server
from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, Outcome, Properties, physical_name
from stoker.resources.properties import Property
from stoker.store import documents, servers
from stoker.types import server_base, server_policy
from stoker.types.server_base import ServerType
from stoker.types.user_data import SOFTWARE_CONFIG


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
            server_base.end(context, resource)
            release_server(
                context.tx, context.env.work, resource.physical_id, resource.data.get("name") or resource.name
            )
            servers.delete(context.tx, resource.physical_id)
            documents.delete(context.tx, resource.physical_id)
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
        if name == "os_collect_config":
            return server_base.collect_config(context, resource)
        if name == "user_data":
            return server_base.user_data(context, resource, SOFTWARE_CONFIG, "")
        return server_base.fact_attribute(context, resource, name)

    def reached_by(self, context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
        enrolled = resource.data.get("enrolled")
        if enrolled is None:
            name = properties["name"] or physical_name(context, resource)
            enrolled = servers.find_enrolled(context.tx, name, context.project_id) is not None
        return server_base.reached_by(context, properties, enrolled=enrolled)
