"""/identity/v3/projects"""

from __future__ import annotations

from typing import Any

from stoker.http import params as http_params
from stoker.http.identity import params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration
from stoker.model.errors import EntityNotFound
from stoker.model.principal import Project
from stoker.store import identity
from stoker.store.tx import Tx


def index(request: RequestContext) -> Response:
    """List all projects for site administrators, for others the projects in which they have a role."""
    with request.app.store.read() as tx:
        found = _visible(tx, request)
    name = request.query.get("name")
    shown = [serializers.project(each) for each in found if name in (None, each.name)]
    return Response(200, {"projects": shown, "links": {}})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = {each.id: each for each in _visible(tx, request)}.get(request.path["project_id"])
    if found is None:
        raise EntityNotFound(f"Could not find project: {request.path['project_id']}.")
    return Response(200, {"project": serializers.project(found)})


def create(request: RequestContext) -> Response:
    said = params.read_body(request, "project")
    name, enabled = params.read_name(said), params.read_enabled(said)
    description = http_params.text(said.get("description"), "description", 65535) or ""
    made = request.app.store.write(lambda tx: administration.create_project(tx, name, description, enabled=enabled))
    return Response(201, {"project": serializers.project(made)})


def change(request: RequestContext) -> Response:
    said = params.read_body(request, "project")
    changes: dict[str, Any] = {}
    if "name" in said:
        changes["name"] = params.read_name(said)
    if "enabled" in said:
        changes["enabled"] = params.read_enabled(said)
    if "description" in said:
        changes["description"] = http_params.text(said["description"], "description", 65535) or ""
    id = request.path["project_id"]
    made = request.app.store.write(lambda tx: administration.change_project(tx, id, **changes))
    return Response(200, {"project": serializers.project(made)})


def delete(request: RequestContext) -> Response:
    """Delete a project. Raises Conflict while the project is not empty."""
    request.app.store.write(lambda tx: administration.delete_project(tx, request.path["project_id"]))
    return Response(204)


def _visible(tx: Tx, request: RequestContext) -> list[Project]:
    if request.limited_to is None:
        return identity.list_projects(tx)
    return identity.projects_of(tx, request.limited_to)
