"""Serializes identity objects to Keystone's JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME
from stoker.model.principal import ApplicationCredential, Principal, Project, Token, User
from stoker.settings import OFF, Settings

DOMAIN = {"id": DOMAIN_ID, "name": DOMAIN_NAME}
REGION = "RegionOne"
_INTERFACES = ("public", "internal", "admin")


def time(moment: datetime) -> str:
    """Format a time as Keystone does: UTC, with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def services(site: Settings, project_id: str | None) -> list[tuple[str, str, str]]:
    """Return the type, name and URL of each service in the catalog."""
    public_url = site.public_url
    found = [("identity", "keystone", f"{public_url}/identity/v3")]
    if project_id:
        found.append(("orchestration", "heat", f"{public_url}/v1/{project_id}"))
        found.append(("cloudformation", "heat-cfn", f"{public_url}/cfn/v1"))
        if site.messaging != OFF:
            found.append(("messaging", "zaqar", f"{public_url}/messaging" if site.embeds_queues else site.messaging))
        if site.object_store != OFF:
            embedded = f"{public_url}/object-store/v1/AUTH_{project_id}"
            found.append(("object-store", "swift", embedded if site.embeds_objects else site.object_store))
    return found


def catalog(site: Settings, project_id: str | None) -> list[dict[str, Any]]:
    """Return the service catalog of a token. Without a project, it contains only the identity service."""
    return [
        {
            "id": kind,
            "type": kind,
            "name": name,
            "endpoints": [
                {"id": f"{kind}-{interface}", "interface": interface, "region": REGION, "region_id": REGION, "url": url}
                for interface in _INTERFACES
            ],
        }
        for kind, name, url in services(site, project_id)
    ]


def token(principal: Principal, project: Project | None, row: Token, site: Settings | None) -> dict[str, Any]:
    """Serialize a token. ``site`` None: without the catalog."""
    shown: dict[str, Any] = {
        "methods": list(row.methods),
        "user": {"id": principal.user_id, "name": principal.user_name, "domain": DOMAIN, "password_expires_at": None},
        "audit_ids": [],
        "issued_at": time(row.issued_at),
        "expires_at": time(principal.expires_at),
    }
    if project is not None:
        shown["project"] = {"id": project.id, "name": project.name, "domain": DOMAIN}
        shown["is_domain"] = False
    if row.system:
        shown["system"] = {"all": True}
    if project is not None or row.system:
        shown["roles"] = [{"id": role, "name": role} for role in sorted(principal.roles)]
        if site is not None:
            shown["catalog"] = catalog(site, principal.project_id)
    if row.application_credential_id is not None:
        shown["application_credential"] = {"id": row.application_credential_id, "restricted": principal.restricted}
    return shown


def project(project: Project) -> dict[str, Any]:
    return {
        "id": project.id,
        "name": project.name,
        "domain_id": project.domain_id,
        "description": project.description,
        "enabled": project.enabled,
        "is_domain": False,
        "parent_id": project.domain_id,
        "tags": [],
        "options": {},
    }


def user(user: User) -> dict[str, Any]:
    return {
        "id": user.id,
        "name": user.name,
        "domain_id": user.domain_id,
        "default_project_id": user.default_project_id,
        "enabled": user.enabled,
        "password_expires_at": None,
        "options": {},
    }


def credential(credential: ApplicationCredential) -> dict[str, Any]:
    """Serialize an application credential without its secret, which only the response to its creation contains."""
    return {
        "id": credential.id,
        "name": credential.name,
        "description": credential.description or None,
        "project_id": credential.project_id,
        "user_id": credential.user_id,
        "roles": [{"id": role, "name": role} for role in credential.roles],
        "unrestricted": credential.unrestricted,
        "expires_at": None if credential.expires_at is None else time(credential.expires_at),
        "system": None,
    }
