"""/identity/v3/projects and role_assignments: the roles of users in projects and on the system."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from stoker.http.contracts import Absent, LongText, Name, StrictBody, convert, operation
from stoker.http.identity.access import is_administrator, limit_of
from stoker.http.identity.serializers import (
    DOMAIN,
    AccountName,
    changes_of,
    is_enabled,
    listing,
    serialize_project,
    serialize_role,
)
from stoker.http.request import RequestContext
from stoker.identity import administration
from stoker.identity.directory import DOMAIN_ID
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.ids import SITE
from stoker.model.principal import Project
from stoker.store import identity
from stoker.store.tx import Tx


class ProjectCreate(StrictBody):
    name: AccountName
    description: LongText | None = None
    enabled: bool = True


class ProjectUpdate(StrictBody):
    name: AccountName | Absent = UNSET
    description: LongText | Absent | None = UNSET
    enabled: bool | Absent = UNSET


@operation(200)
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List all projects for site administrators, for others the projects in which they have a role."""
    query, enabled = request.query, is_enabled(request)
    domain_id = query.get("domain_id")
    # No project is a domain or has tags, and the parent of every project is the domain.
    is_empty = (
        query.get("is_domain", "").lower() == "true"
        or query.get("tags")
        or query.get("tags-any")
        or query.get("parent_id", domain_id or DOMAIN_ID) != (domain_id or DOMAIN_ID)
    )
    if is_empty:
        return listing("projects", [])
    projects = _visible(tx, request, name=query.get("name"), domain_id=domain_id, enabled=enabled)
    return listing("projects", map(serialize_project, projects))


@operation(200)
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    return {"project": serialize_project(_get(tx, request))}


@operation(201, member="project")
def create(request: RequestContext, tx: Tx, body: ProjectCreate) -> dict[str, Any]:
    request.subject.detail = body.name
    project = administration.create_project(tx, body.name, body.description or "", enabled=body.enabled)
    return {"project": serialize_project(project)}


@operation(200, member="project")
def change(request: RequestContext, tx: Tx, body: ProjectUpdate) -> dict[str, Any]:
    changes = changes_of(body)
    if "description" in changes:
        changes["description"] = changes["description"] or ""
    return {"project": serialize_project(administration.change_project(tx, request.path["project_id"], **changes))}


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a project. Raises Conflict while the project is not empty."""
    administration.delete_project(tx, request.path["project_id"])


def _visible(tx: Tx, request: RequestContext, **filters: str | bool | None) -> list[Project]:
    return identity.list_projects(tx, user_id=limit_of(request), **filters)


def _get(tx: Tx, request: RequestContext) -> Project:
    """Return the project of the path. Raises EntityNotFound."""
    id = request.path["project_id"]
    for project in _visible(tx, request, id=id):
        return project
    raise EntityNotFound(f"Could not find project: {id}.")


@operation(200)
def index_assignments(request: RequestContext, tx: Tx) -> dict[str, Any]:
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
    # Who administers a project may name it, but may not read who administers the site.
    if "scope.domain.id" in query or "group.id" in query or {"scope.system", "scope.project.id"} <= query.keys():
        return []
    project_id = SITE if "scope.system" in query else query.get("scope.project.id")
    rows = identity.list_assignments(tx, user_id=query.get("user.id"), project_id=project_id, role=query.get("role.id"))

    def render(user_id: str, id: str, role: str) -> dict[str, Any]:
        scope: dict[str, Any] = {"system": {"all": True}} if id == SITE else {"project": {"id": id}}
        link = f"{root}/{'system' if id == SITE else f'projects/{id}'}/users/{user_id}/roles/{role}"
        return {"role": {"id": role}, "user": {"id": user_id}, "scope": scope, "links": {"assignment": link}}

    return [render(*row) for row in rows]


@operation(200)
def list_roles(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the roles of a user in the path's project, or on the system. Raises EntityNotFound."""
    user_id, project_id = _subject(request)
    roles = identity.roles(tx, user_id, project_id)
    if not roles and project_id != SITE:
        # A user without a role in the project must not learn whether the project exists.
        if not is_administrator(request):
            raise EntityNotFound(f"Could not find project: {project_id}.")
        administration.user(tx, user_id)
        administration.project(tx, project_id)
    return listing("roles", map(serialize_role, sorted(roles)))


@operation(204)
def check_role(request: RequestContext, tx: Tx) -> None:
    """Return 204 if the user has the role in the project or on the system. Raises EntityNotFound otherwise."""
    if request.path["role_id"] not in identity.roles(tx, *_subject(request)):
        raise EntityNotFound("Could not find role assignment.")


@operation(204)
def grant_role(request: RequestContext, tx: Tx) -> None:
    administration.grant(tx, *_subject(request), _role(request))


@operation(204)
def revoke_role(request: RequestContext, tx: Tx) -> None:
    """
    Remove a role of a user in a project or on the system.

    Users cannot remove their own system role, so that a site always keeps an administrator.
    """
    user_id, project_id = _subject(request)
    if project_id == SITE and user_id == request.user.user_id:
        raise Invalid("you cannot remove your own system role: another administrator of the site has to do it")
    administration.revoke(tx, user_id, project_id, _role(request))


def _subject(request: RequestContext) -> tuple[str, str]:
    """Return the user and the project of the path; for roles on the system, the SITE."""
    return request.path["user_id"], request.path.get("project_id", SITE)


def _role(request: RequestContext) -> str:
    role: str = convert(request.path["role_id"], Name, "role")
    return role
