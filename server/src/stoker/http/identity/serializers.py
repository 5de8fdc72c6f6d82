"""Representations and parameters that several modules of the identity API share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from stoker.http.contracts import StrictBody
from stoker.http.request import RequestContext
from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.principal import Project

#: The name of a project, user or credential: not only of spaces.
AccountName = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\u0000]*[^\s\u0000][^\u0000]*$")]
#: The passwords of users; a new one needs ``passwords.MIN_LENGTH`` characters.
Password = Annotated[str, Meta(min_length=1, max_length=4096)]
DOMAIN = {"id": DOMAIN_ID, "name": DOMAIN_NAME}


def listing(name: str, entries: Iterable[Any]) -> dict[str, Any]:
    """Return a list as Keystone does. All entries are on one page, so there are no links."""
    return {name: list(entries), "links": {}}


def select(request: RequestContext, entries: Iterable[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Return the entries whose members have the values of the query's parameters with these names."""
    wanted = {name: request.query[name] for name in names if name in request.query}
    return [entry for entry in entries if all(entry[name] == value for name, value in wanted.items())]


def find(entries: Iterable[dict[str, Any]], kind: str, id: str) -> dict[str, Any]:
    """Return the entry with this id. Raises EntityNotFound."""
    for entry in entries:
        if entry["id"] == id:
            return entry
    raise EntityNotFound(f"Could not find {kind}: {id}.")


def is_enabled(request: RequestContext) -> bool | None:
    """Return the query's parameter ``enabled``, or None. Raises Invalid."""
    word = request.query.get("enabled")
    if word is not None and word.lower() not in ("true", "false"):
        raise Invalid(f"enabled must be true or false, not {word!r:.100}")
    return None if word is None else word.lower() == "true"


def changes_of(body: StrictBody) -> dict[str, Any]:
    """Return the members that a request to change an object contains."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}


def time(moment: datetime) -> str:
    """Format a time as Keystone does: UTC, with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def serialize_role(role: str) -> dict[str, Any]:
    """Return a role, whose id is its name."""
    return {"id": role, "name": role, "domain_id": None, "description": None, "options": {}}


def serialize_project(project: Project) -> dict[str, Any]:
    return {
        "id": project.id,
        "name": project.name,
        "domain_id": project.domain_id,
        "description": project.description,
        "enabled": project.enabled,
        "parent_id": project.domain_id,
        "is_domain": False,
        "tags": [],
        "options": {},
    }
