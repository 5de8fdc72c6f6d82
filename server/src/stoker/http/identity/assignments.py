"""/identity/v3/role_assignments, and the roles of users in projects and on the system."""

from __future__ import annotations

from typing import Any

from stoker.http.contracts import convert, operation
from stoker.http.fields import Name
from stoker.http.identity.access import is_administrator
from stoker.http.identity.serializers import DOMAIN, listing, serialize_role
from stoker.http.request import RequestContext
from stoker.identity import administration
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import identity
from stoker.store.tx import Tx


@operation(200)
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the role assignments in projects and on the system that match the query's filters."""
    assignments = _list_assignments(tx, request)
    if request.query.get("include_names", "0") in ("0", "false", "False"):
        return listing("role_assignments", assignments)
    ids = [part["id"] for item in assignments for part in (item["user"], item["scope"].get("project")) if part]
    names = identity.names(tx, ids)
    for item in assignments:
        item["role"] = serialize_role(item["role"]["id"])
        for part in (item["user"], item["scope"].get("project")):
            if part:
                part |= {"name": names.get(part["id"]), "domain": DOMAIN}
    return listing("role_assignments", assignments)


def _list_assignments(tx: Tx, request: RequestContext) -> list[dict[str, Any]]:
    """Return the assignments that match the query. No role is assigned to a group or on a domain."""
    query, root = request.query, f"{request.app.settings.public_url}/identity/v3"
    if "scope.domain.id" in query or "group.id" in query:
        return []
    filters, project_id = {"user_id": query.get("user.id"), "role": query.get("role.id")}, query.get("scope.project.id")

    def render(user_id: str, role: str, scope: dict[str, Any], place: str) -> dict[str, Any]:
        link = f"{root}/{place}/users/{user_id}/roles/{role}"
        return {"role": {"id": role}, "user": {"id": user_id}, "scope": scope, "links": {"assignment": link}}

    in_projects = [] if "scope.system" in query else identity.list_assignments(tx, project_id=project_id, **filters)
    on_system = [] if project_id is not None else identity.list_system_assignments(tx, **filters)
    return [
        *(render(user, role, {"project": {"id": id}}, f"projects/{id}") for user, id, role in in_projects),
        *(render(user, role, {"system": {"all": True}}, "system") for user, role in on_system),
    ]


@operation(200)
def of_user(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the roles of a user in a project. Raises EntityNotFound."""
    roles = identity.roles(tx, request.path["user_id"], request.path["project_id"])
    if not roles:  # a user without a role in the project must not learn whether the project exists
        _refuse_unknown(tx, request)
    return listing("roles", map(serialize_role, sorted(roles)))


@operation(204)
def check(request: RequestContext, tx: Tx) -> None:
    """Return 204 if the user has the role in the project. Raises EntityNotFound otherwise."""
    _require(request, identity.roles(tx, request.path["user_id"], request.path["project_id"]))


@operation(204)
def grant(request: RequestContext, tx: Tx) -> None:
    """Give a user a role in a project."""
    administration.grant(tx, *_grant(request))


@operation(204)
def revoke(request: RequestContext, tx: Tx) -> None:
    """Remove a role of a user in a project."""
    administration.revoke(tx, *_grant(request))


@operation(200)
def of_user_on_system(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the roles of a user on the system."""
    return listing("roles", map(serialize_role, sorted(identity.system_roles(tx, request.path["user_id"]))))


@operation(204)
def check_on_system(request: RequestContext, tx: Tx) -> None:
    """Return 204 if the user has the role on the system. Raises EntityNotFound otherwise."""
    _require(request, identity.system_roles(tx, request.path["user_id"]))


@operation(204)
def grant_on_system(request: RequestContext, tx: Tx) -> None:
    """Give a user a role on the system."""
    administration.grant_system(tx, request.path["user_id"], request.path["role_id"])


@operation(204)
def revoke_on_system(request: RequestContext, tx: Tx) -> None:
    """Remove a system role. Users cannot remove their own, so that a site always keeps an administrator."""
    user_id, role = request.path["user_id"], request.path["role_id"]
    if user_id == request.user.user_id:
        raise Invalid("you cannot remove your own system role: another administrator of the site has to do it")
    administration.revoke_system(tx, user_id, role)


def _refuse_unknown(tx: Tx, request: RequestContext) -> None:
    """Raises EntityNotFound if the user or the project does not exist, or if the caller may not know."""
    if not is_administrator(request):
        raise EntityNotFound(f"Could not find project: {request.path['project_id']}.")
    administration.user(tx, request.path["user_id"])
    administration.project(tx, request.path["project_id"])


def _require(request: RequestContext, roles: frozenset[str]) -> None:
    """Raise EntityNotFound unless the path's role is among ``roles``."""
    if request.path["role_id"] not in roles:
        raise EntityNotFound("Could not find role assignment.")


def _grant(request: RequestContext) -> tuple[str, str, str]:
    return request.path["user_id"], request.path["project_id"], convert(request.path["role_id"], Name, "role")
