"""The service catalog, and /identity/v3/services, endpoints, regions, domains, groups, roles and versions."""

from __future__ import annotations

from typing import Any

from stoker.http.contracts import operation
from stoker.http.identity.serializers import DOMAIN, find, is_enabled, listing, select, serialize_role
from stoker.http.request import RequestContext
from stoker.identity.directory import ROLES
from stoker.settings import OFF, Settings

_REGION = {"id": "RegionOne", "description": "", "parent_region_id": None}
_DOMAIN = {**DOMAIN, "enabled": True, "description": ""}
_ROLES = [serialize_role(role) for role in ROLES]


@operation(200)
def version(request: RequestContext) -> dict[str, Any]:
    """Return the version of the API."""
    return {"version": _version(request)}


@operation(300)
def versions(request: RequestContext) -> dict[str, Any]:
    """List the versions of the API."""
    return {"versions": {"values": [_version(request)]}}


@operation(200)
def domains(request: RequestContext) -> dict[str, Any]:
    """List the domains. There is one."""
    is_shown = is_enabled(request) in (None, True)
    return listing("domains", select(request, [_DOMAIN] if is_shown else [], "name"))


@operation(200)
def show_domain(request: RequestContext) -> dict[str, Any]:
    """Return a domain."""
    return {"domain": find([_DOMAIN], "domain", request.path["domain_id"])}


@operation(200)
def roles(request: RequestContext) -> dict[str, Any]:
    """List the roles. No role belongs to a domain."""
    return listing("roles", select(request, _ROLES, "name", "domain_id"))


@operation(200)
def show_role(request: RequestContext) -> dict[str, Any]:
    """Return a role."""
    return {"role": find(_ROLES, "role", request.path["role_id"])}


@operation(200)
def groups(_: RequestContext) -> dict[str, Any]:
    """List the groups, or those of a user. There are none: roles are granted to users."""
    return listing("groups", [])


@operation(200)
def show(request: RequestContext) -> dict[str, Any]:
    """Return the service catalog of the token."""
    return listing("catalog", catalog(request.app.settings, request.user.project_id))


@operation(200)
def services(request: RequestContext) -> dict[str, Any]:
    """List the services of the catalog."""
    return listing("services", select(request, _services(request), "type", "name"))


@operation(200)
def show_service(request: RequestContext) -> dict[str, Any]:
    """Return a service."""
    return {"service": find(_services(request), "service", request.path["service_id"])}


@operation(200)
def endpoints(request: RequestContext) -> dict[str, Any]:
    """List the endpoints of the services."""
    return listing("endpoints", select(request, _endpoints(request), "interface", "service_id", "region_id"))


@operation(200)
def show_endpoint(request: RequestContext) -> dict[str, Any]:
    """Return an endpoint."""
    return {"endpoint": find(_endpoints(request), "endpoint", request.path["endpoint_id"])}


@operation(200)
def regions(request: RequestContext) -> dict[str, Any]:
    """List the regions. There is one, without a parent."""
    return listing("regions", select(request, [_REGION], "parent_region_id"))


@operation(200)
def show_region(request: RequestContext) -> dict[str, Any]:
    """Return a region."""
    return {"region": find([_REGION], "region", request.path["region_id"])}


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


def _services(request: RequestContext) -> list[dict[str, Any]]:
    entries = catalog(request.app.settings, request.user.project_id)
    return [{"id": entry["id"], "type": entry["type"], "name": entry["name"], "enabled": True} for entry in entries]


def _endpoints(request: RequestContext) -> list[dict[str, Any]]:
    return [
        {**endpoint, "service_id": entry["id"], "enabled": True}
        for entry in catalog(request.app.settings, request.user.project_id)
        for endpoint in entry["endpoints"]
    ]


def _version(request: RequestContext) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
        "links": [{"rel": "self", "href": f"{request.app.settings.public_url}/identity/v3/"}],
    }
