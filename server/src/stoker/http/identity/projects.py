"""/identity/v3/projects"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from stoker.http.contracts import operation
from stoker.http.fields import Absent, LongText, StrictBody
from stoker.http.identity.access import limit_of
from stoker.http.identity.serializers import AccountName, changes_of, is_enabled, listing, serialize_project
from stoker.http.request import RequestContext
from stoker.identity import administration
from stoker.identity.directory import DOMAIN_ID
from stoker.model.errors import EntityNotFound
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
