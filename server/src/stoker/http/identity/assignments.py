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
    """List the roles of a user in the path's project, or on the system. Raises EntityNotFound."""
    user_id, project_id = _subject(request)
    roles = administration.roles_of(tx, user_id, project_id)
    if not roles and project_id is not None:
        # A user without a role in the project must not learn whether the project exists.
        if not is_administrator(request):
            raise EntityNotFound(f"Could not find project: {project_id}.")
        administration.user(tx, user_id)
        administration.project(tx, project_id)
    return listing("roles", map(serialize_role, sorted(roles)))


@operation(204)
def check(request: RequestContext, tx: Tx) -> None:
    """Return 204 if the user has the role in the project or on the system. Raises EntityNotFound otherwise."""
    if request.path["role_id"] not in administration.roles_of(tx, *_subject(request)):
        raise EntityNotFound("Could not find role assignment.")


@operation(204)
def grant(request: RequestContext, tx: Tx) -> None:
    administration.grant(tx, *_subject(request), _role(request))


@operation(204)
def revoke(request: RequestContext, tx: Tx) -> None:
    """
    Remove a role of a user in a project or on the system.

    Users cannot remove their own system role, so that a site always keeps an administrator.
    """
    user_id, project_id = _subject(request)
    if project_id is None and user_id == request.user.user_id:
        raise Invalid("you cannot remove your own system role: another administrator of the site has to do it")
    administration.revoke(tx, user_id, project_id, _role(request))


def _subject(request: RequestContext) -> tuple[str, str | None]:
    """Return the user and the project of the path; None: the system."""
    return request.path["user_id"], request.path.get("project_id")


def _role(request: RequestContext) -> str:
    role: str = convert(request.path["role_id"], Name, "role")
    return role
