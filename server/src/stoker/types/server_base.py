"""What the types of servers have in common: the choice of the metadata transport, and the metadata that agents read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from stoker.model.server import OWN_AGENT, Kind, Server, with_labels
from stoker.model.stack import Resource
from stoker.resources.agent_access import UPSTREAM_AGENT, describe_unsigned
from stoker.resources.base import (
    DONE,
    AdoptionFailure,
    Context,
    KnowsAgent,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    target_of,
)
from stoker.resources.properties import Property
from stoker.resources.roles import ProvidesServer
from stoker.store import configs, documents, rows, servers
from stoker.transports import AUTO, select_metadata
from stoker.transports.base import PublishingTransport, needs_provisioning
from stoker.types import server_policy
from stoker.types.user_data import HEAT_CFNTOOLS, build

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Kind of the job that publishes a server's document, keyed by the server's id; its arguments: ``resource_id``.
PUBLISH = "document.publish"
#: Key of ``Resource.data`` for the id to which user data refers, if the server gets its id after its user data.
BOOT_ID = "boot_id"

PROPERTIES: Mapping[str, Property] = {
    "software_config_transport": Property(
        kind="string",
        update_allowed=True,
        description="How the server learns what to run.",
    ),
    "agent": Property(
        kind="string",
        allowed=(OWN_AGENT, UPSTREAM_AGENT),
        update_allowed=True,
        description="Which agent runs there: ours, which user_data installs, or upstream's, which it configures.",
    ),
    "deployment_swift_data": Property(
        kind="map",
        update_allowed=True,
        schema={"container": Property(kind="string"), "object": Property(kind="string")},
        description="Where POLL_TEMP_URL keeps the server's metadata.",
    ),
    **server_policy.PROPERTIES,
}

#: Attributes from the facts that the server's agent reports; null before the first report, and of other agents.
FACT_ATTRIBUTES: Mapping[str, str] = {
    "address": "The address with which the server reaches other networks (Stoker's own).",
    "first_address": "The same.",
    "networks": "Addresses by interface (Stoker's own).",
    "os": "The operating system: id, family, name, version (Stoker's own).",
    "facts": "All facts that the server's agent reports, and the server's labels (Stoker's own).",
}


def fact_attribute(context: Context, resource: Resource, name: str) -> Any:
    """Return an attribute of ``FACT_ATTRIBUTES``."""
    server_id = resource.physical_id or resource.id
    facts = servers.load_facts(context.tx, server_id)
    if name == "facts":
        server = servers.find(context.tx, server_id) if facts else None
        return with_labels(facts, server.labels) if server else None
    return facts.get("address" if name == "first_address" else name)


def link(context: Context, resource: Resource, server_id: str) -> None:
    """Record that the server belongs to this resource."""
    values = {"stack_id": context.stack_id, "resource_id": resource.id, "resource_name": resource.name}
    servers.change(context.tx, server_id, **values)


def live_metadata(context: Context, resource: Resource) -> Mapping[str, Any]:
    """Return ``deployments`` and ``os-collect-config``, as Heat stores them in a server's metadata."""
    bodies = documents.bodies(context.tx, resource.physical_id or resource.id, context.project_id)
    return {"deployments": [rows.load(body) for body in bodies], "os-collect-config": collect_config(context, resource)}


def collect_config(context: Context, resource: Resource) -> Mapping[str, Any]:
    """
    Return the configuration of the server's ``os-collect-config`` agent.

    The sections of former transports are present with null values, so that the agent drops their configuration.
    """
    transports_by_name = context.env.transports.metadata_transports
    site = context.env.platform
    target = replace(target_of(context, resource), own_agent=_has_own_agent(resource, resource.properties))
    names = [name for name in all_transports(resource) if name in transports_by_name]
    all_sections = [transports_by_name[name].sections(context.tx, site, target) for name in names]
    sections = all_sections[0] if all_sections else {}
    emptied: dict[str, Any] = {}
    for before in all_sections[1:]:
        emptied |= {name: dict.fromkeys(section) for name, section in before.items()}
    # A cloud's servers read their metadata service first.
    first = ["ec2"] if resource.type == "OS::Nova::Server" else []
    return {"collectors": [*first, *sections, "local"], **emptied, **sections}


def all_transports(resource: Resource) -> list[str]:
    """Return the server's current transport, followed by its former ones."""
    names: list[str] = resource.data.get("transports") or []
    return names


def reached_by(
    context: Context, properties: Properties, *, enrolled: bool = False, local: bool = False
) -> tuple[str, bool]:
    """Return the name of the server's transport, and whether the server runs Stoker's agent."""
    name = _chosen(context, properties, own_agent=enrolled or local)
    return name, enrolled or _says_own_agent(properties, otherwise=local)


def _chosen(context: Context, properties: Properties, *, own_agent: bool) -> str:
    """Return the name of the transport. ``own_agent``: Stoker's agent with its own channel, enrolled or local."""
    offered = context.env.transports
    name: str = properties["software_config_transport"] or offered.default_metadata
    if name != AUTO:
        return name
    carried = not offered.requires_signatures or _says_own_agent(properties, otherwise=own_agent)
    return select_metadata(context.env.platform, own_agent=own_agent, carried=carried)


def _has_own_agent(resource: Resource, properties: Properties) -> bool:
    """
    Return whether an existing server runs Stoker's agent.

    A provider's servers have no entry ``enrolled`` in their data; without the property ``agent`` they run Stoker's
    agent.
    """
    local = "enrolled" not in resource.data
    return bool(resource.data.get("enrolled")) or _says_own_agent(properties, otherwise=local)


def _says_own_agent(properties: Properties, *, otherwise: bool) -> bool:
    agent = properties.get("agent")
    return agent == OWN_AGENT if agent else otherwise


def configure(
    context: Context, resource: Resource, properties: Properties, server_id: str, *, own_agent: bool
) -> dict[str, Any]:
    """
    Apply the transport, labels and policy of the properties to a server. The document is published if the transport
    requires it. Returns the entries for the resource's data. Raises ResourceFailure.
    """
    had = all_transports(resource)
    agent = properties.get("agent")
    if agent != (resource.properties.get("agent") if had else None):
        servers.change(context.tx, server_id, agent=agent)
    names = open_transports(context, resource, properties, own_agent=own_agent)
    if names != had:
        start_publishing(context, server_id, resource.id, names)
    elif _has_own_agent(resource, properties) is not _has_own_agent(resource, resource.properties):
        context.tx.bump_document(server_id)  # the sections for another agent may differ
    server_policy.represent(context, resource, server_id)
    return {"transports": names, **server_policy.apply(context, resource, properties, server_id)}


def open_transports(context: Context, resource: Resource, properties: Properties, *, own_agent: bool) -> list[str]:
    """
    Create the transport's object or queue. The server may not exist yet.

    Returns all transports of the server, the current one first. The objects and queues of former transports remain
    until the server is deleted, because an agent that missed the change learns of it there. Raises ResourceFailure if
    the site requires signatures and the agent cannot verify them.
    """
    name = _chosen(context, properties, own_agent=own_agent)
    if context.env.transports.is_rejected(name, own_agent=_says_own_agent(properties, otherwise=own_agent)):
        raise ResourceFailure(describe_unsigned(name))
    had = all_transports(resource)
    if had and had[0] == name:
        return had
    now = context.env.transports.metadata_transports[name]
    if needs_provisioning(now) and name not in had:
        now.open(context.tx, context.env.platform, target_of(context, resource))
    return [name, *(transport for transport in had if transport != name)]


def start_publishing(context: Context, server_id: str, resource_id: str, names: list[str]) -> None:
    """Start publishing the server's document if one of its transports requires it."""
    transports = context.env.transports.metadata_transports
    if any(isinstance(transports.get(name), PublishingTransport) for name in names):
        documents.carry(context.tx, server_id, resource_id)
        context.tx.bump_document(server_id)


def end(context: Context, resource: Resource) -> None:
    """Delete the objects and queues of all the server's transports, former ones included."""
    by_name = context.env.transports.metadata_transports
    context.env.work.cancel(context.tx, PUBLISH, resource.physical_id or resource.id)
    for transport in (by_name[name] for name in all_transports(resource) if name in by_name):
        if needs_provisioning(transport):
            transport.close(context.tx, context.env.platform, target_of(context, resource))


def user_data(context: Context, resource: Resource, format: str, text: str) -> str:
    """
    Return the user data with which the server boots. If ``text`` is the id of a config, the config's content replaces
    it.
    """
    config = configs.find(context.tx, text) if format != HEAT_CFNTOOLS and _ID.fullmatch(text) else None
    if config is not None and config.project_id == context.project_id and isinstance(config.config, str):
        text = config.config
    own_agent = _says_own_agent(resource.properties, otherwise=False)
    server = servers.find(context.tx, resource.physical_id or resource.id) if own_agent else None
    has_key = server is not None and bool(server.key_generation)  # an enrolled agent
    return build(
        format,
        text,
        metadata={**resource.metadata, **live_metadata(context, resource)},
        public_url=context.env.platform.public_url,
        ca_certificates=context.env.platform.ca_certificates,
        stoker_agent=own_agent,
        document_key=signing_key(context, resource, server)[1] if own_agent and not has_key else "",
    )


def signing_key(context: Context, resource: Resource, server: Server | None) -> tuple[str, str]:
    """
    Return the id and the key with which the server's published documents are signed.

    A server without an agent key verifies documents with the key in its user data, which grants no access.
    """
    if server is not None and server.key_generation:
        return server.id, context.env.keys.present(server.id, server.key_generation)
    id = resource.data.get(BOOT_ID) or resource.physical_id or resource.id
    return id, context.env.keys.present(id, 0)


class ServerType(ProvidesServer, KnowsAgent, ResourceType):
    """A resource type whose resources are servers."""

    has_live_metadata = True
    agents_transport = "software_config_transport"

    def retain(self, context: Context, resource: Resource) -> None:
        """Release the server from its stack. Stoker's agent can still poll it; nothing is published any more."""
        end(context, resource)
        if not resource.physical_id:
            return
        documents.carry(context.tx, resource.physical_id, None)
        server_policy.end(context, resource, resource.physical_id)
        context.tx.bump_document(resource.physical_id)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """
        Link an existing server to this resource. Raises AdoptionFailure.

        A server that was imported from another Heat has no transport yet, and gets one.
        """
        server = servers.find(context.tx, resource.physical_id or "")
        enrolled = bool(resource.data.get("enrolled"))
        right = server is not None and server.project_id == context.project_id and server.stack_id is None
        if server is None or not right or enrolled is not (server.kind is Kind.ENROLLED):
            raise AdoptionFailure("server", resource.physical_id)
        if enrolled:
            server_policy.represent(context, resource, server.id)
            return DONE
        link(context, resource, server.id)
        if "transports" in resource.data:
            return DONE
        settings = configure(context, resource, properties, server.id, own_agent=False)
        return Outcome(data={"name": server.name, "enrolled": False, **settings})

    def exists(self, context: Context, id: str) -> bool:
        server = servers.find(context.tx, id)
        return server is not None and server.project_id == context.project_id

    def validate(self, properties: Properties) -> None:
        server_policy.validate(properties)

    def live_metadata(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        return live_metadata(context, resource)
