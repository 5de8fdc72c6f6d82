"""/identity/v3/projects"""

from __future__ import annotations

from msgspec import UNSET

from stoker.http.contracts import operation
from stoker.http.fields import Absent, Body, LongText
from stoker.http.identity.types import NO_LINKS, AccountName, NameQuery, NoLinks, Project, changes_of, serialize_project
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration
from stoker.model import principal as model
from stoker.model.errors import EntityNotFound
from stoker.store import identity
from stoker.store.tx import Tx


class ProjectCreate(Body):
    name: AccountName
    description: LongText | None = None
    enabled: bool = True


class ProjectCreateBody(Body):
    project: ProjectCreate


class ProjectUpdate(Body):
    name: AccountName | Absent = UNSET
    description: LongText | Absent | None = UNSET
    enabled: bool | Absent = UNSET


class ProjectUpdateBody(Body):
    project: ProjectUpdate


@operation(200, {"projects": list[Project], "links": NoLinks})
def index(request: RequestContext, query: NameQuery) -> Response:
    """List all projects for site administrators, for others the projects in which they have a role."""
    with request.app.store.read() as tx:
        projects = [project for project in _visible(tx, request) if query.name in (None, project.name)]
    return Response(200, {"projects": [serialize_project(project) for project in projects], "links": NO_LINKS})


@operation(200, {"project": Project})
def show(request: RequestContext) -> Response:
    """Return a project."""
    id = request.path["project_id"]
    with request.app.store.read() as tx:
        project = next((project for project in _visible(tx, request) if project.id == id), None)
    if project is None:
        raise EntityNotFound(f"Could not find project: {id}.")
    return _respond(200, project)


@operation(201, {"project": Project}, errors=(409,))
def create(request: RequestContext, body: ProjectCreateBody) -> Response:
    """Create a project."""
    new = body.project
    return _respond(
        201,
        request.app.store.write(
            lambda tx: administration.create_project(tx, new.name, new.description or "", enabled=new.enabled)
        ),
    )


@operation(200, {"project": Project}, errors=(409,))
def change(request: RequestContext, body: ProjectUpdateBody) -> Response:
    """Change a project."""
    id, changes = request.path["project_id"], changes_of(body.project)
    if "description" in changes:
        changes["description"] = changes["description"] or ""
    return _respond(200, request.app.store.write(lambda tx: administration.change_project(tx, id, **changes)))


@operation(204, errors=(409,))
def delete(request: RequestContext) -> Response:
    """Delete a project. Raises Conflict while the project is not empty."""
    request.app.store.write(lambda tx: administration.delete_project(tx, request.path["project_id"]))
    return Response(204)


def _visible(tx: Tx, request: RequestContext) -> list[model.Project]:
    if request.limited_to is None:
        return identity.list_projects(tx)
    return identity.projects_of(tx, request.limited_to)


def _respond(status: int, project: model.Project) -> Response:
    return Response(status, {"project": serialize_project(project)})
