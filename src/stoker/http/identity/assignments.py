"""/identity/v3/roles and role_assignments: the roles of users in projects and on the system."""

from __future__ import annotations

from typing import Any

from stoker.http import params as http_params
from stoker.http.identity import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration
from stoker.identity.directory import ROLES
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import identity
from stoker.store.tx import Tx


def roles(request: RequestContext) -> Response:
    name = request.query.get("name")
    return Response(200, {"roles": [_role(role) for role in ROLES if name in (None, role)], "links": {}})


def show_role(request: RequestContext) -> Response:
    if request.path["role_id"] not in ROLES:
        raise EntityNotFound(f"Could not find role: {request.path['role_id']}.")
    return Response(200, {"role": _role(request.path["role_id"])})


def create_role(_call: RequestContext) -> Response:
    """Always refuse: the set of roles is fixed. Raises Forbidden."""
    administration.create_role()


def index(request: RequestContext) -> Response:
    """List the role assignments in projects and on the system that match the query's filters."""
    user, project, role = (request.query.get(name) for name in ("user.id", "scope.project.id", "role.id"))
    system = request.query.get("scope.system")
    named = request.query.get("include_names") not in (None, "0", "false", "False")
    with request.app.store.read() as tx:
        in_projects = identity.list_assignments(tx) if system is None else []
        on_system = identity.list_system_assignments(tx) if project is None else []
        names = {each.id: each.name for each in identity.list_users(tx)}
        names |= {each.id: each.name for each in identity.list_projects(tx)}

    def render(user_id: str, held: str, scope: dict[str, Any], place: str) -> dict[str, Any]:
        return {
            "role": _role(held) if named else {"id": held},
            "user": _thing(user_id, names, named=named),
            "scope": scope,
            "links": {
                "assignment": f"{request.app.settings.public_url}/identity/v3/{place}/users/{user_id}/roles/{held}"
            },
        }

    def is_wanted(user_id: str, held: str) -> bool:
        return user in (None, user_id) and role in (None, held)

    rows = [
        render(who, held, {"project": _thing(where, names, named=named)}, f"projects/{where}")
        for who, where, held in in_projects
        if is_wanted(who, held) and project in (None, where)
    ]
    rows += [render(who, held, {"system": {"all": True}}, "system") for who, held in on_system if is_wanted(who, held)]
    return Response(200, {"role_assignments": rows, "links": {}})


def of_user(request: RequestContext) -> Response:
    """List the roles of a user in a project. Raises EntityNotFound."""
    user_id, project_id = request.path["user_id"], request.path["project_id"]
    with request.app.store.read() as tx:
        held = identity.roles(tx, user_id, project_id)
        if not held:  # a user without a role in the project must not learn whether the project exists
            _refuse_unknown(tx, request)
    return Response(200, {"roles": [_role(role) for role in sorted(held)], "links": {}})


def check(request: RequestContext) -> Response:
    """Return 204 if the user has the role in the project. Raises EntityNotFound otherwise."""
    with request.app.store.read() as tx:
        held = identity.roles(tx, request.path["user_id"], request.path["project_id"])
    return _answer_check(request, held)


def grant(request: RequestContext) -> Response:
    request.app.store.write(lambda tx: administration.grant(tx, *_place(request)))
    return Response(204)


def revoke(request: RequestContext) -> Response:
    request.app.store.write(lambda tx: administration.revoke(tx, *_place(request)))
    return Response(204)


def of_user_on_system(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        held = identity.system_roles(tx, request.path["user_id"])
    return Response(200, {"roles": [_role(role) for role in sorted(held)], "links": {}})


def check_on_system(request: RequestContext) -> Response:
    """Return 204 if the user has the role on the system. Raises EntityNotFound otherwise."""
    with request.app.store.read() as tx:
        held = identity.system_roles(tx, request.path["user_id"])
    return _answer_check(request, held)


def grant_on_system(request: RequestContext) -> Response:
    request.app.store.write(
        lambda tx: administration.grant_system(tx, request.path["user_id"], request.path["role_id"])
    )
    return Response(204)


def revoke_on_system(request: RequestContext) -> Response:
    """Remove a system role. Users cannot remove their own, so that a site always keeps an administrator."""
    if request.path["user_id"] == request.user.user_id:
        raise Invalid("you cannot remove your own system role: another administrator of the site has to do it")
    request.app.store.write(
        lambda tx: administration.revoke_system(tx, request.path["user_id"], request.path["role_id"])
    )
    return Response(204)


def _refuse_unknown(tx: Tx, request: RequestContext) -> None:
    """Raises EntityNotFound if the user or the project does not exist, or if the caller may not know."""
    if request.limited_to is not None:
        raise EntityNotFound(f"Could not find project: {request.path['project_id']}.")
    administration.user(tx, request.path["user_id"])
    administration.project(tx, request.path["project_id"])


def _answer_check(request: RequestContext, held: frozenset[str]) -> Response:
    """Return 204 if the path's role is among ``held``. Raises EntityNotFound otherwise."""
    if request.path["role_id"] not in held:
        raise EntityNotFound("Could not find role assignment.")
    return Response(204)


def _place(request: RequestContext) -> tuple[str, str, str]:
    http_params.text(request.path["role_id"], "role")
    return request.path["user_id"], request.path["project_id"], request.path["role_id"]


def _role(role: str) -> dict[str, Any]:
    return {"id": role, "name": role, "domain_id": None, "description": None, "options": {}}


def _thing(id: str, names: dict[str, str], *, named: bool) -> dict[str, Any]:
    return {"id": id, "name": names.get(id), "domain": serializers.DOMAIN} if named else {"id": id}
