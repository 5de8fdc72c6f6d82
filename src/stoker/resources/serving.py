"""What both server types share: the choice of transport, and the metadata an agent reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import transports
from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.server import Kind
from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceFailure, party_of
from stoker.resources.properties import Property
from stoker.store import deployments, documents, rows, servers
from stoker.transports.base import Lodging, Pushing

PROPERTIES: Mapping[str, Property] = {
    "software_config_transport": Property(
        kind="string",
        default=transports.DEFAULT_METADATA,
        update_allowed=True,
        description="How the server learns what to run.",
    ),
    "deployment_swift_data": Property(
        kind="map",
        update_allowed=True,
        schema={"container": Property(kind="string"), "object": Property(kind="string")},
        description="Where POLL_TEMP_URL keeps the server's metadata.",
    ),
}


def validate(properties: Properties) -> None:
    wanted = properties["software_config_transport"]
    known = transports.load().offered_metadata()
    if wanted is not UNKNOWN and wanted not in known:
        raise StackValidationFailed(
            f"software_config_transport: {clip(repr(wanted))} is not an allowed value [{', '.join(known)}]"
        )


def adopt(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    """Raises ResourceFailure when the server is gone or another stack's."""
    found = servers.find(context.tx, resource.physical_id or "")
    enrolled = bool(resource.data.get("enrolled"))
    right = found is not None and found.project_id == context.project_id and found.stack_id is None
    if found is None or not right or enrolled is not (found.kind is Kind.ENROLLED):
        raise ResourceFailure(f"The server ({resource.physical_id}) is not there to be adopted.")
    if enrolled:
        return DONE
    servers.relink(context.tx, found.id, context.stack_id, resource.id, resource.name)
    return DONE


def exists(context: Context, id: str) -> bool:
    found = servers.find(context.tx, id)
    return found is not None and found.project_id == context.project_id


def live_metadata(context: Context, resource: Resource) -> Mapping[str, Any]:
    """``deployments`` and ``os-collect-config``, as Heat keeps them in a server's metadata."""
    bodies = deployments.bodies(context.tx, resource.physical_id or resource.id, context.project_id)
    return {"deployments": [rows.load(body) for body in bodies], "os-collect-config": collect_config(context, resource)}


def collect_config(context: Context, resource: Resource) -> Mapping[str, Any]:
    """The agent's own configuration. Sections of transports that it had before are there, with nothing in them."""
    known = context.services.transports.carrying
    now = known.get(resource.properties.get("software_config_transport") or "")
    site, party = context.services.site, party_of(context, resource)
    sections = now.sections(site, party) if now else {}
    emptied: dict[str, Any] = {}
    for before in (known[name] for name in resource.data.get("transports", ()) if name in known):
        emptied |= {name: dict.fromkeys(section) for name, section in before.sections(site, party).items()}
    return {"collectors": [*_first_collectors(resource), *sections, "local"], **emptied, **sections}


def begin(context: Context, resource: Resource, properties: Properties, server_id: str) -> None:
    """Have the transport's place ready, and the document carried there if it is one that carries."""
    now = context.services.transports.carrying[properties["software_config_transport"]]
    if isinstance(now, Lodging):
        now.open(context.tx, context.services.site, party_of(context, resource))
    if isinstance(now, Pushing):
        documents.carry(context.tx, server_id, resource.id)
        context.tx.touch(server_id)


def end(context: Context, resource: Resource, properties: Properties) -> None:
    """With whatever any of its transports has left anywhere."""
    names = (properties.get("software_config_transport"), *resource.data.get("transports", ()))
    known = context.services.transports.carrying
    for each in (known[name] for name in names if name in known):
        if isinstance(each, Lodging):
            each.close(context.tx, context.services.site, party_of(context, resource))


def change(context: Context, resource: Resource, properties: Properties) -> list[str]:
    """
    The transports that it had before. What they have left stays until the server goes: an agent that has not heard of
    the change yet hears of it there.
    """
    before = resource.properties.get("software_config_transport")
    if resource.physical_id and before != properties["software_config_transport"]:
        begin(context, resource, properties, resource.physical_id)
    return transports_after(resource, properties)


def transports_after(resource: Resource, properties: Properties) -> list[str]:
    """The transports that a server had before; its agent has to forget them."""
    now = properties["software_config_transport"]
    had = [*resource.data.get("transports", ()), resource.properties.get("software_config_transport")]
    return [name for name in dict.fromkeys(had) if name and name != now]


def _first_collectors(resource: Resource) -> list[str]:
    """A machine of the cloud's finds its metadata service first."""
    return ["ec2"] if resource.type == "OS::Nova::Server" else []
