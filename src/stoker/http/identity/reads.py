"""/identity/v3: what clients look up besides tokens."""

from __future__ import annotations

from typing import Any

from stoker.http.call import Call, Reply
from stoker.http.identity import shapes
from stoker.identity.directory import DOMAIN_ID, ROLES
from stoker.model.errors import EntityNotFound, Forbidden
from stoker.model.principal import Project
from stoker.store import identity


def version(call: Call) -> Reply:
    return Reply(200, {"version": _version(call)})


def versions(call: Call) -> Reply:
    return Reply(300, {"versions": {"values": [_version(call)]}})


def list_projects(call: Call) -> Reply:
    """All for an administrator, otherwise one's own."""
    with call.services.store.read() as tx:
        admin = "admin" in call.user.roles
        found = identity.projects_listed(tx) if admin else identity.projects_of(tx, call.user.user_id)
    name = call.query.get("name")
    shown = [shapes.project(each) for each in found if name in (None, each.name)]
    return Reply(200, {"projects": shown, "links": {}})


def show_project(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found: Project | None = identity.project(tx, call.path["project_id"])
        own = {each.id for each in identity.projects_of(tx, call.user.user_id)}
    if found is None or (found.id not in own and "admin" not in call.user.roles):
        raise EntityNotFound(f"Could not find project: {call.path['project_id']}.")
    return Reply(200, {"project": shapes.project(found)})


def list_users(call: Call) -> Reply:
    if "admin" not in call.user.roles:
        raise Forbidden("You are not authorized to perform the requested action: identity:list_users.")
    with call.services.store.read() as tx:
        found = identity.users_listed(tx)
    name = call.query.get("name")
    return Reply(200, {"users": [shapes.user(each) for each in found if name in (None, each.name)], "links": {}})


def show_user(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = identity.user(tx, call.path["user_id"])
    if found is None or (found.id != call.user.user_id and "admin" not in call.user.roles):
        raise EntityNotFound(f"Could not find user: {call.path['user_id']}.")
    return Reply(200, {"user": shapes.user(found)})


def user_projects(call: Call) -> Reply:
    if call.path["user_id"] != call.user.user_id and "admin" not in call.user.roles:
        raise Forbidden("You are not authorized to perform the requested action: identity:list_user_projects.")
    with call.services.store.read() as tx:
        found = identity.projects_of(tx, call.path["user_id"])
    return Reply(200, {"projects": [shapes.project(each) for each in found], "links": {}})


def show_domain(call: Call) -> Reply:
    if call.path["domain_id"] != DOMAIN_ID:
        raise EntityNotFound(f"Could not find domain: {call.path['domain_id']}.")
    return Reply(200, {"domain": {**shapes.DOMAIN, "enabled": True, "description": ""}})


def roles(call: Call) -> Reply:
    name = call.query.get("name")
    shown = [{"id": role, "name": role, "domain_id": None} for role in ROLES if name in (None, role)]
    return Reply(200, {"roles": shown, "links": {}})


def services(call: Call) -> Reply:
    found = shapes.services(call.services.settings.public_url, call.user.project_id)
    shown = [{"id": kind, "type": kind, "name": name, "enabled": True} for kind, name, _ in found]
    return Reply(200, {"services": shown, "links": {}})


def endpoints(call: Call) -> Reply:
    found = shapes.catalog(call.services.settings.public_url, call.user.project_id)
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
