"""/identity/v3: what clients look up besides tokens."""

from __future__ import annotations

from typing import Any

from stoker.http.call import Call, Reply
from stoker.http.identity import shapes
from stoker.identity.directory import DOMAIN_ID
from stoker.model.errors import EntityNotFound


def version(call: Call) -> Reply:
    return Reply(200, {"version": _version(call)})


def versions(call: Call) -> Reply:
    return Reply(300, {"versions": {"values": [_version(call)]}})


def show_domain(call: Call) -> Reply:
    if call.path["domain_id"] != DOMAIN_ID:
        raise EntityNotFound(f"Could not find domain: {call.path['domain_id']}.")
    return Reply(200, {"domain": {**shapes.DOMAIN, "enabled": True, "description": ""}})


def services(call: Call) -> Reply:
    found = shapes.services(call.services.settings, call.user.project_id)
    shown = [{"id": kind, "type": kind, "name": name, "enabled": True} for kind, name, _ in found]
    return Reply(200, {"services": shown, "links": {}})


def endpoints(call: Call) -> Reply:
    found = shapes.catalog(call.services.settings, call.user.project_id)
    shown = [
        {**endpoint, "service_id": service["id"], "enabled": True}
        for service in found
        for endpoint in service["endpoints"]
    ]
    return Reply(200, {"endpoints": shown, "links": {}})


def regions(_: Call) -> Reply:
    return Reply(200, {"regions": [{"id": shapes.REGION, "description": "", "parent_region_id": None}], "links": {}})


def _version(call: Call) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
        "links": [{"rel": "self", "href": f"{call.services.settings.public_url}/identity/v3/"}],
    }
