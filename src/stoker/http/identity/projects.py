"""/identity/v3/projects"""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.identity import rules, shapes
from stoker.identity import administration
from stoker.model.errors import EntityNotFound
from stoker.model.principal import Project
from stoker.store import identity


def index(call: Call) -> Reply:
    """All for an administrator, otherwise one's own."""
    with call.services.store.read() as tx:
        everything = rules.is_admin(call)
        found = identity.projects_listed(tx) if everything else identity.projects_of(tx, call.user.user_id)
    name = call.query.get("name")
    shown = [shapes.project(each) for each in found if name in (None, each.name)]
    return Reply(200, {"projects": shown, "links": {}})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found: Project | None = identity.project(tx, call.path["project_id"])
        own = {each.id for each in identity.projects_of(tx, call.user.user_id)}
    if found is None or (found.id not in own and not rules.is_admin(call)):
        raise EntityNotFound(f"Could not find project: {call.path['project_id']}.")
    return Reply(200, {"project": shapes.project(found)})


def create(call: Call) -> Reply:
    rules.require_admin(call)
    said = rules.body(call, "project")
    name, enabled = rules.name(said), rules.enabled(said)
    description = reading.text(said.get("description"), "description", 65535) or ""
    made = call.services.store.write(lambda tx: administration.create_project(tx, name, description, enabled=enabled))
    return Reply(201, {"project": shapes.project(made)})


def change(call: Call) -> Reply:
    rules.require_admin(call)
    said = rules.body(call, "project")
    changes: dict[str, Any] = {}
    if "name" in said:
        changes["name"] = rules.name(said)
    if "enabled" in said:
        changes["enabled"] = rules.enabled(said)
    if "description" in said:
        changes["description"] = reading.text(said["description"], "description", 65535) or ""
    id = call.path["project_id"]
    made = call.services.store.write(lambda tx: administration.change_project(tx, id, **changes))
    return Reply(200, {"project": shapes.project(made)})


def delete(call: Call) -> Reply:
    rules.require_admin(call)
    call.services.store.write(lambda tx: administration.delete_project(tx, call.path["project_id"]))
    return Reply(204)
