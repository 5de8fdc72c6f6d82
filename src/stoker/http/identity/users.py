"""/identity/v3/users"""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.identity import rules, shapes
from stoker.identity import administration, passwords
from stoker.model.errors import EntityNotFound, Invalid, Unauthorized
from stoker.store import identity


def index(call: Call) -> Reply:
    rules.require_admin(call)
    with call.services.store.read() as tx:
        found = identity.users_listed(tx)
    name = call.query.get("name")
    return Reply(200, {"users": [shapes.user(each) for each in found if name in (None, each.name)], "links": {}})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = identity.user(tx, call.path["user_id"])
    if found is None or (found.id != call.user.user_id and not rules.is_admin(call)):
        raise EntityNotFound(f"Could not find user: {call.path['user_id']}.")
    return Reply(200, {"user": shapes.user(found)})


def create(call: Call) -> Reply:
    rules.require_admin(call)
    said = rules.body(call, "user")
    name, enabled, hashed = rules.name(said), rules.enabled(said), passwords.hashed(_password(said))
    project = reading.text(said.get("default_project_id"), "default_project_id")
    made = call.services.store.write(lambda tx: administration.create_user(tx, name, hashed, project, enabled=enabled))
    return Reply(201, {"user": shapes.user(made)})


def change(call: Call) -> Reply:
    rules.require_admin(call)
    said = rules.body(call, "user")
    changes: dict[str, Any] = {}
    if "name" in said:
        changes["name"] = rules.name(said)
    if "enabled" in said:
        changes["enabled"] = rules.enabled(said)
    if "default_project_id" in said:
        changes["default_project_id"] = reading.text(said["default_project_id"], "default_project_id")
    if "password" in said:
        changes["password_hash"] = passwords.hashed(_password(said))
    made = call.services.store.write(lambda tx: administration.change_user(tx, call.path["user_id"], **changes))
    return Reply(200, {"user": shapes.user(made)})


def change_password(call: Call) -> Reply:
    """One's own, knowing the old one; all tokens end."""
    rules.require_self(call, call.path["user_id"])
    said = rules.body(call, "user")
    fresh, old = _password(said), said.get("original_password")
    with call.services.store.read() as tx:
        found = administration.user(tx, call.path["user_id"])
    if not isinstance(old, str) or not passwords.matches(old, found.password_hash):
        raise Unauthorized("The original password is wrong.")
    hashed = passwords.hashed(fresh)
    call.services.store.write(lambda tx: administration.change_user(tx, found.id, password_hash=hashed))
    return Reply(204)


def delete(call: Call) -> Reply:
    rules.require_admin(call)
    if call.path["user_id"] == call.user.user_id:
        raise Invalid("nobody can delete the user they are")
    call.services.store.write(lambda tx: administration.delete_user(tx, call.path["user_id"]))
    return Reply(204)


def projects(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        found = identity.projects_of(tx, call.path["user_id"])
    return Reply(200, {"projects": [shapes.project(each) for each in found], "links": {}})


def _password(said: dict[str, Any]) -> str:
    found = said.get("password")
    if not isinstance(found, str) or not found or len(found) > 4096:
        raise Invalid("password is needed: text of 1 to 4096 characters")
    return found
