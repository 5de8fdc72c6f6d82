"""Who has which role where: /identity/v3/roles, role_assignments, and roles below a project's user."""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.identity import rules, shapes
from stoker.identity import administration
from stoker.identity.directory import ROLES
from stoker.model.errors import EntityNotFound, Forbidden
from stoker.store import identity


def roles(call: Call) -> Reply:
    name = call.query.get("name")
    return Reply(200, {"roles": [_role(role) for role in ROLES if name in (None, role)], "links": {}})


def show_role(call: Call) -> Reply:
    if call.path["role_id"] not in ROLES:
        raise EntityNotFound(f"Could not find role: {call.path['role_id']}.")
    return Reply(200, {"role": _role(call.path["role_id"])})


def create_role(_call: Call) -> Reply:
    raise Forbidden(f"The roles are {', '.join(ROLES)}: there cannot be others.")


def index(call: Call) -> Reply:
    user, project = call.query.get("user.id"), call.query.get("scope.project.id")
    role = call.query.get("role.id")
    if user != call.user.user_id:
        rules.require_admin(call)
    named = call.query.get("include_names") not in (None, "0", "false", "False")
    with call.services.store.read() as tx:
        found = [
            each
            for each in identity.assignments_listed(tx)
            if user in (None, each[0]) and project in (None, each[1]) and role in (None, each[2])
        ]
        names = {each.id: each.name for each in identity.users_listed(tx)}
        names |= {each.id: each.name for each in identity.projects_listed(tx)}
    url = call.services.settings.public_url
    shown = [
        {
            "role": _role(held) if named else {"id": held},
            "user": _thing(who, names, named=named),
            "scope": {"project": _thing(where, names, named=named)},
            "links": {"assignment": f"{url}/identity/v3/projects/{where}/users/{who}/roles/{held}"},
        }
        for who, where, held in found
    ]
    return Reply(200, {"role_assignments": shown, "links": {}})


def of_user(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        administration.user(tx, call.path["user_id"])
        administration.project(tx, call.path["project_id"])
        held = identity.roles(tx, call.path["user_id"], call.path["project_id"])
    return Reply(200, {"roles": [_role(role) for role in sorted(held)], "links": {}})


def check(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        held = identity.roles(tx, call.path["user_id"], call.path["project_id"])
    if call.path["role_id"] not in held:
        raise EntityNotFound("Could not find role assignment.")
    return Reply(204)


def grant(call: Call) -> Reply:
    rules.require_admin(call)
    call.services.store.write(lambda tx: administration.grant(tx, *_place(call)))
    return Reply(204)


def revoke(call: Call) -> Reply:
    rules.require_admin(call)
    call.services.store.write(lambda tx: administration.revoke(tx, *_place(call)))
    return Reply(204)


def _place(call: Call) -> tuple[str, str, str]:
    reading.text(call.path["role_id"], "role")
    return call.path["user_id"], call.path["project_id"], call.path["role_id"]


def _role(role: str) -> dict[str, Any]:
    return {"id": role, "name": role, "domain_id": None, "description": None, "options": {}}


def _thing(id: str, names: dict[str, str], *, named: bool) -> dict[str, Any]:
    return {"id": id, "name": names.get(id), "domain": shapes.DOMAIN} if named else {"id": id}
