"""The service catalog, and /identity/v3/services, endpoints, regions, domains, groups, roles and versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.http.access import ANY_TOKEN
from stoker.http.api import Handler, Route
from stoker.http.contracts import operation
from stoker.http.identity.serializers import DOMAIN, find, is_enabled, listing, select, serialize_role
from stoker.http.request import RequestContext, Response
from stoker.identity.directory import ROLES
from stoker.settings import OFF, Settings

_REGION = {"id": "RegionOne", "description": "", "parent_region_id": None}
_DOMAIN = {**DOMAIN, "enabled": True, "description": ""}
_ROLES = [serialize_role(role) for role in ROLES]


@operation(200)
def version(request: RequestContext) -> dict[str, Any]:
    return {"version": _version(request)}


@operation(300)
def versions(request: RequestContext) -> dict[str, Any]:
    return {"versions": {"values": [_version(request)]}}


def list_groups(_: RequestContext) -> Response:
    """List the groups, or those of a user. There are none: roles are granted to users."""
    return Response(200, listing("groups", []))


@operation(200)
def show(request: RequestContext) -> dict[str, Any]:
    return listing("catalog", catalog(request.app.settings, request.user.project_id))


def catalog(site: Settings, project_id: str | None) -> list[dict[str, Any]]:
    """Return the service catalog of a token. Without a project, it contains only the identity service."""
    root = site.public_url
    services = [("identity", "keystone", f"{root}/identity/v3")]
    if project_id:
        services.append(("orchestration", "heat", f"{root}/v1/{project_id}"))
        services.append(("cloudformation", "heat-cfn", f"{root}/cfn/v1"))
        if site.messaging != OFF:
            services.append(("messaging", "zaqar", f"{root}/messaging" if site.embeds_queues else site.messaging))
        if site.object_store != OFF:
            embedded = f"{root}/object-store/v1/AUTH_{project_id}"
            services.append(("object-store", "swift", embedded if site.embeds_objects else site.object_store))
    region = {"region": _REGION["id"], "region_id": _REGION["id"]}
    return [
        {
            "id": kind,
            "type": kind,
            "name": name,
            "endpoints": [
                {"id": f"{kind}-{interface}", "interface": interface, **region, "url": url}
                for interface in ("public", "internal", "admin")
            ],
        }
        for kind, name, url in services
    ]


def _list_domains(request: RequestContext) -> list[dict[str, Any]]:
    return [_DOMAIN] if is_enabled(request) in (None, True) else []


def _list_services(request: RequestContext) -> list[dict[str, Any]]:
    entries = catalog(request.app.settings, request.user.project_id)
    return [{"id": entry["id"], "type": entry["type"], "name": entry["name"], "enabled": True} for entry in entries]


def _list_endpoints(request: RequestContext) -> list[dict[str, Any]]:
    return [
        {**endpoint, "service_id": entry["id"], "enabled": True}
        for entry in catalog(request.app.settings, request.user.project_id)
        for endpoint in entry["endpoints"]
    ]


#: What follows from the site's settings, or is always the same: the entries of each noun, and its filters. No role
#: belongs to a domain, and no region has a parent.
_NOUNS: Mapping[str, tuple[Callable[[RequestContext], list[dict[str, Any]]], tuple[str, ...]]] = {
    "domain": (_list_domains, ("name",)),
    "role": (lambda _: _ROLES, ("name", "domain_id")),
    "service": (_list_services, ("type", "name")),
    "endpoint": (_list_endpoints, ("interface", "service_id", "region_id")),
    "region": (lambda _: [_REGION], ("parent_region_id",)),
}


def index(noun: str) -> Handler:
    """Return the handler that lists the entries of a noun of the catalog."""
    find_all, filters = _NOUNS[noun]
    return lambda request: Response(200, listing(f"{noun}s", select(request, find_all(request), *filters)))


def routes_of(noun: str) -> list[Route]:
    """Return the routes that list the entries of a noun of the catalog, and show one."""

    def show_one(request: RequestContext) -> Response:
        return Response(200, {noun: find(_NOUNS[noun][0](request), noun, request.path[f"{noun}_id"])})

    path = f"/identity/v3/{noun}s"
    one = f"{path}/{{{noun}_id}}"
    return [Route("GET", path, ANY_TOKEN, index(noun)), Route("GET", one, ANY_TOKEN, show_one)]


ROUTES = [route for noun in _NOUNS for route in routes_of(noun)]


def _version(request: RequestContext) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
        "links": [{"rel": "self", "href": f"{request.app.settings.public_url}/identity/v3/"}],
    }
