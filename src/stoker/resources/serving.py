"""What both server types share: the choice of transport, and the metadata an agent reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker import transports
from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.server import OWN_AGENT, Kind
from stoker.model.stack import Resource
from stoker.resources import governing
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceFailure, party_of
from stoker.resources.properties import Property
from stoker.resources.user_data import HEAT_CFNTOOLS, Boot, build
from stoker.store import configs, deployments, documents, rows, servers
from stoker.transports import choosing
from stoker.transports.base import Lodging, Pushing
from stoker.transports.choosing import AUTO

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Kind of the job that publishes a server's document, by the server's id; its arguments: ``resource_id``.
PUBLISH = "document.publish"

PROPERTIES: Mapping[str, Property] = {
    "software_config_transport": Property(
        kind="string",
        update_allowed=True,
        description="How the server learns what to run.",
    ),
    "agent": Property(
        kind="string",
        allowed=(OWN_AGENT, "os-collect-config"),
        update_allowed=True,
        description="Which agent runs there: ours, which user_data installs, or upstream's, which it configures.",
    ),
    "deployment_swift_data": Property(
        kind="map",
        update_allowed=True,
        schema={"container": Property(kind="string"), "object": Property(kind="string")},
        description="Where POLL_TEMP_URL keeps the server's metadata.",
    ),
    **governing.PROPERTIES,
}


def validate(properties: Properties) -> None:
    governing.validate(properties)
    wanted = properties["software_config_transport"]
    known = transports.load().metadata_names
    if wanted not in (UNKNOWN, None, *known):
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
        governing.stand_for(context, resource, found.id)
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
    site = context.services.site
    party = replace(party_of(context, resource), own_agent=_has_own_agent(resource, resource.properties))
    names = [name for name in all_transports(resource) if name in known]
    all_sections = [known[name].sections(context.tx, site, party) for name in names]
    sections = all_sections[0] if all_sections else {}
    emptied: dict[str, Any] = {}
    for before in all_sections[1:]:
        emptied |= {name: dict.fromkeys(section) for name, section in before.items()}
    return {"collectors": [*_first_collectors(resource), *sections, "local"], **emptied, **sections}


def all_transports(resource: Resource) -> list[str]:
    """The one that a server has now, and those it had before."""
    found: list[str] = resource.data.get("transports") or []
    return found


def reached_by(
    context: Context, properties: Properties, *, enrolled: bool = False, local: bool = False
) -> tuple[str, bool]:
    """The server's transport, and whether its agent is ours."""
    name = _chosen(context, properties, own_agent=enrolled or local)
    return name, enrolled or _says_own_agent(properties, otherwise=local)


def _chosen(context: Context, properties: Properties, *, own_agent: bool) -> str:
    """``own_agent``: with a channel of its own."""
    name: str = properties["software_config_transport"] or context.services.transports.default_metadata
    return choosing.metadata(context.services.site, own_agent=own_agent) if name == AUTO else name


def _has_own_agent(resource: Resource, properties: Properties) -> bool:
    """Of a server that is there: those of the provider do not say whether they are enrolled."""
    local = "enrolled" not in resource.data
    return bool(resource.data.get("enrolled")) or _says_own_agent(properties, otherwise=local)


def _says_own_agent(properties: Properties, *, otherwise: bool) -> bool:
    said = properties.get("agent")
    return said == OWN_AGENT if said else otherwise


def begin(
    context: Context, resource: Resource, properties: Properties, server_id: str, *, own_agent: bool
) -> list[str]:
    """
    Have the transport's place ready, and the document carried there if it is one that carries.

    Returns all transports that it has had, this one first. What those before have left stays until the server goes: an
    agent that has not heard of the change hears of it there.
    """
    name = _chosen(context, properties, own_agent=own_agent)
    had = all_transports(resource)
    said = properties.get("agent")
    if said != (resource.properties.get("agent") if had else None):
        servers.set_agent(context.tx, server_id, said)
    if had and had[0] == name:
        if _has_own_agent(resource, properties) is not _has_own_agent(resource, resource.properties):
            context.tx.touch(server_id)  # another agent may be told otherwise
        return had
    now = context.services.transports.carrying[name]
    if isinstance(now, Lodging) and name not in had:
        now.open(context.tx, context.services.site, party_of(context, resource))
    found = [name, *(each for each in had if each != name)]
    if any(isinstance(context.services.transports.carrying.get(each), Pushing) for each in found):
        documents.carry(context.tx, server_id, resource.id)
        context.tx.touch(server_id)
    return found


def end(context: Context, resource: Resource) -> None:
    """With whatever any of its transports has left anywhere."""
    known = context.services.transports.carrying
    context.services.work.cancel(context.tx, PUBLISH, resource.physical_id or resource.id)
    for each in (known[name] for name in all_transports(resource) if name in known):
        if isinstance(each, Lodging):
            each.close(context.tx, context.services.site, party_of(context, resource))


def user_data(context: Context, resource: Resource, format: str, text: str) -> str:
    """What a server has to boot with to find its way here. A config's id stands for what the config holds."""
    known = configs.find(context.tx, text) if format != HEAT_CFNTOOLS and _ID.fullmatch(text) else None
    if known is not None and known.project_id == context.project_id and isinstance(known.config, str):
        text = known.config
    return build(
        Boot(
            format=format,
            text=text,
            metadata={**resource.metadata, **live_metadata(context, resource)},
            public_url=context.services.site.public_url,
            stoker_agent=_says_own_agent(resource.properties, otherwise=False),
        )
    )


def _first_collectors(resource: Resource) -> list[str]:
    """A machine of the cloud's finds its metadata service first."""
    return ["ec2"] if resource.type == "OS::Nova::Server" else []
