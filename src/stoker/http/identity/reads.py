"""/identity/v3: versions, domains, services, endpoints and regions."""

from __future__ import annotations

from typing import Any

from stoker.http.identity import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.identity.directory import DOMAIN_ID
from stoker.model.errors import EntityNotFound


def version(request: RequestContext) -> Response:
    return Response(200, {"version": _version(request)})


def versions(request: RequestContext) -> Response:
    return Response(300, {"versions": {"values": [_version(request)]}})


def show_domain(request: RequestContext) -> Response:
    if request.path["domain_id"] != DOMAIN_ID:
        raise EntityNotFound(f"Could not find domain: {request.path['domain_id']}.")
    return Response(200, {"domain": {**serializers.DOMAIN, "enabled": True, "description": ""}})


def services(request: RequestContext) -> Response:
    found = serializers.services(request.app.settings, request.user.project_id)
    shown = [{"id": kind, "type": kind, "name": name, "enabled": True} for kind, name, _ in found]
    return Response(200, {"services": shown, "links": {}})


def endpoints(request: RequestContext) -> Response:
    found = serializers.catalog(request.app.settings, request.user.project_id)
    shown = [
        {**endpoint, "service_id": service["id"], "enabled": True}
        for service in found
        for endpoint in service["endpoints"]
    ]
    return Response(200, {"endpoints": shown, "links": {}})


def regions(_: RequestContext) -> Response:
    return Response(
        200, {"regions": [{"id": serializers.REGION, "description": "", "parent_region_id": None}], "links": {}}
    )


def _version(request: RequestContext) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
        "links": [{"rel": "self", "href": f"{request.app.settings.public_url}/identity/v3/"}],
    }
