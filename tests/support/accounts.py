"""Users of a served Stoker, created through its identity API, with roles in one project and tokens."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from support.server import Answer, HeatClient, Served

PASSWORD = "correct horse battery staple"


@dataclass(frozen=True)
class Account(HeatClient):
    """A user with a token that is scoped to ``project``."""

    stoker: Served
    name: str
    user_id: str
    project: str
    token: str

    def heat(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request(verb, f"/v1/{self.project}{path}", body, **headers)

    def request(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.stoker.request(verb, path, body, {"X-Auth-Token": self.token, **headers})


def create_project(stoker: Served, name: str | None = None) -> str:
    """Create a project and return its id."""
    body = {"project": {"name": name or f"project-{uuid.uuid4().hex[:8]}"}}
    answer = stoker.identity("POST", "/projects", body)
    assert answer.status == 201, answer.raw
    return str(answer.body["project"]["id"])


def create_account(stoker: Served, *roles: str, project: str | None = None, name: str | None = None) -> Account:
    """Create a user with ``roles`` in ``project`` (default: the administrator's) and log in."""
    project = project or stoker.project
    name = name or f"{'-'.join(roles) or 'nobody'}-{uuid.uuid4().hex[:8]}"
    answer = stoker.identity("POST", "/users", {"user": {"name": name, "password": PASSWORD}})
    assert answer.status == 201, answer.raw
    user_id = str(answer.body["user"]["id"])
    role_ids = {role["name"]: role["id"] for role in stoker.identity("GET", "/roles").body["roles"]}
    for role in roles:
        granted = stoker.identity("PUT", f"/projects/{project}/users/{user_id}/roles/{role_ids[role]}")
        assert granted.status == 204, granted.raw
    return Account(stoker, name, user_id, project, log_in(stoker, name, PASSWORD, project))


def log_in(stoker: Served, name: str, password: str, project: str | None) -> str:
    """Return a token of the user, scoped to the project, or unscoped for None."""
    user = {"name": name, "domain": {"id": "default"}, "password": password}
    answer = stoker.log_in(user, project and {"project": {"id": project}})
    assert answer.status == 201, answer.raw
    return str(answer.headers["X-Subject-Token"])
