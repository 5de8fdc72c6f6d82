"""The service catalog, and /identity/v3/services, endpoints, regions, domains and versions."""

from __future__ import annotations

from msgspec import field

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Id, fill
from stoker.http.identity.types import DOMAIN, NO_LINKS, Domain, NoLinks
from stoker.http.request_context import RequestContext, Response
from stoker.identity.directory import DOMAIN_ID
from stoker.model.errors import EntityNotFound
from stoker.settings import OFF, Settings

_REGION = "RegionOne"
_INTERFACES = ("public", "internal", "admin")


class CatalogEndpoint(Answer):
    id: Id
    interface: str
    region: str
    region_id: Id
    url: str


class CatalogEntry(Answer):
    id: Id
    type: str
    name: str
    endpoints: list[CatalogEndpoint]


class Service(Answer):
    id: Id
    type: str
    name: str
    enabled: bool


class Endpoint(CatalogEndpoint):
    service_id: Id
    enabled: bool


class Region(Answer):
    id: Id
    description: str
    parent_region_id: str | None


class KeystoneVersion(Answer):
    id: str
    status: str
    updated: str
    media_types: list[dict[str, str]] = field(name="media-types")
    links: list[dict[str, str]]


@operation(200, {"version": KeystoneVersion})
def version(request: RequestContext) -> Response:
    """Return the version of the API."""
    return Response(200, {"version": _version(request)})


@operation(300, {"versions": {"values": list[KeystoneVersion]}})
def versions(request: RequestContext) -> Response:
    """List the versions of the API."""
    return Response(300, {"versions": {"values": [_version(request)]}})


@operation(200, {"domains": list[Domain], "links": NoLinks})
def domains(_: RequestContext) -> Response:
    """List the domains. There is one."""
    return Response(200, {"domains": [_DOMAIN], "links": NO_LINKS})


@operation(200, {"domain": Domain})
def show_domain(request: RequestContext) -> Response:
    """Return a domain."""
    if request.path["domain_id"] != DOMAIN_ID:
        raise EntityNotFound(f"Could not find domain: {request.path['domain_id']}.")
    return Response(200, {"domain": _DOMAIN})


@operation(200, {"catalog": list[CatalogEntry], "links": NoLinks})
def show(request: RequestContext) -> Response:
    """Return the service catalog of the token."""
    return Response(200, {"catalog": catalog(request.app.settings, request.user.project_id), "links": NO_LINKS})


@operation(200, {"services": list[Service], "links": NoLinks})
def services(request: RequestContext) -> Response:
    """List the services of the catalog."""
    entries = catalog(request.app.settings, request.user.project_id)
    services = [Service(id=entry.id, type=entry.type, name=entry.name, enabled=True) for entry in entries]
    return Response(200, {"services": services, "links": NO_LINKS})


@operation(200, {"endpoints": list[Endpoint], "links": NoLinks})
def endpoints(request: RequestContext) -> Response:
    """List the endpoints of the services."""
    endpoints = [
        fill(Endpoint, endpoint, service_id=entry.id, enabled=True)
        for entry in catalog(request.app.settings, request.user.project_id)
        for endpoint in entry.endpoints
    ]
    return Response(200, {"endpoints": endpoints, "links": NO_LINKS})


@operation(200, {"regions": list[Region], "links": NoLinks})
def regions(_: RequestContext) -> Response:
    """List the regions. There is one."""
    return Response(200, {"regions": [Region(id=_REGION, description="", parent_region_id=None)], "links": NO_LINKS})


def catalog(site: Settings, project_id: str | None) -> list[CatalogEntry]:
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
    return [
        CatalogEntry(
            id=kind,
            type=kind,
            name=name,
            endpoints=[
                CatalogEndpoint(
                    id=f"{kind}-{interface}", interface=interface, region=_REGION, region_id=_REGION, url=url
                )
                for interface in _INTERFACES
            ],
        )
        for kind, name, url in services
    ]


def _version(request: RequestContext) -> KeystoneVersion:
    return KeystoneVersion(
        id="v3.14",
        status="stable",
        updated="2020-04-07T00:00:00Z",
        media_types=[{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
        links=[{"rel": "self", "href": f"{request.app.settings.public_url}/identity/v3/"}],
    )


_DOMAIN = Domain(id=DOMAIN.id, name=DOMAIN.name, enabled=True, description="")
