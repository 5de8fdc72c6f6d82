"""/identity/v3/users"""

from __future__ import annotations

from typing import Any

from stoker.http import params as http_params
from stoker.http.client_address import client_address
from stoker.http.identity import params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration, passwords
from stoker.model.errors import Invalid, Unauthorized
from stoker.store import identity


def index(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = identity.list_users(tx)
    name = request.query.get("name")
    return Response(
        200, {"users": [serializers.user(each) for each in found if name in (None, each.name)], "links": {}}
    )


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = administration.user(tx, request.path["user_id"])
    return Response(200, {"user": serializers.user(found)})


def create(request: RequestContext) -> Response:
    said = params.read_body(request, "user")
    name, enabled, hashed = (
        params.read_name(said),
        params.read_enabled(said),
        passwords.hash_password(_password(request, said)),
    )
    project = http_params.text(said.get("default_project_id"), "default_project_id")
    made = request.app.store.write(lambda tx: administration.create_user(tx, name, hashed, project, enabled=enabled))
    return Response(201, {"user": serializers.user(made)})


def change(request: RequestContext) -> Response:
    """Change a user. A new password ends all tokens of the user."""
    said = params.read_body(request, "user")
    changes: dict[str, Any] = {}
    if "name" in said:
        changes["name"] = params.read_name(said)
    if "enabled" in said:
        changes["enabled"] = params.read_enabled(said)
    if "default_project_id" in said:
        changes["default_project_id"] = http_params.text(said["default_project_id"], "default_project_id")
    if "password" in said:
        changes["password_hash"] = passwords.hash_password(_password(request, said))
    made = request.app.store.write(lambda tx: administration.change_user(tx, request.path["user_id"], **changes))
    return Response(200, {"user": serializers.user(made)})


def change_password(request: RequestContext) -> Response:
    """Change a user's own password. Requires the old password; all tokens of the user end."""
    said = params.read_body(request, "user")
    fresh, old = _password(request, said), said.get("original_password")
    with request.app.store.read() as tx:
        found = administration.user(tx, request.path["user_id"])
    address = client_address(request.raw, request.app.settings)
    if not isinstance(old, str) or not request.app.identity.is_password(found.id, old, found.password_hash, address):
        raise Unauthorized("The original password is wrong.")
    hashed = passwords.hash_password(fresh)
    request.app.store.write(lambda tx: administration.change_user(tx, found.id, password_hash=hashed))
    return Response(204)


def delete(request: RequestContext) -> Response:
    """Delete a user with all tokens and credentials. Users cannot delete themselves."""
    if request.path["user_id"] == request.user.user_id:
        raise Invalid("you cannot delete your own user")
    request.app.store.write(lambda tx: administration.delete_user(tx, request.path["user_id"]))
    return Response(204)


def projects(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = identity.projects_of(tx, request.path["user_id"])
    return Response(200, {"projects": [serializers.project(each) for each in found], "links": {}})


def _password(request: RequestContext, said: dict[str, Any]) -> str:
    found = said.get("password")
    least = request.app.settings.min_password_length
    if not isinstance(found, str) or not least <= len(found) <= 4096:
        raise Invalid(f"password must be a text of {least} to 4096 characters (min_password_length)")
    return found
