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
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceFailure
from stoker.resources.properties import Property
from stoker.store import deployments, rows, servers

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
    known = transports.load().carrying
    if wanted is not UNKNOWN and wanted not in known:
        raise StackValidationFailed(
            f"software_config_transport: {clip(repr(wanted))} is not an allowed value [{', '.join(sorted(known))}]"
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
    carrying = context.services.transports.carrying.get(resource.properties.get("software_config_transport") or "")
    sections = carrying.sections() if carrying else {}
    return {"collectors": [*sections, "local"], **sections}
