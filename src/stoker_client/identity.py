"""Keystone's API: projects, users, roles and application credentials."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from stoker_client.parts import part, segment
from stoker_client.references import choose

if TYPE_CHECKING:
    from stoker_client.wire import Wire

Thing = dict[str, Any]


class Identity:
    """Calls to Keystone. References are names, ids or prefixes of ids. Most calls require an administrator."""

    def __init__(self, wire: Wire) -> None:
        self._orchestration = wire

    @cached_property
    def _wire(self) -> Wire:
        return self._orchestration.to("identity")

    def projects(self) -> list[Thing]:
        """Return all projects that the user may see."""
        return cast(list[Thing], part(self._wire.get("/projects"), "projects"))

    def users(self) -> list[Thing]:
        """Return all users."""
        return cast(list[Thing], part(self._wire.get("/users"), "users"))

    def create_project(self, name: str, description: str) -> Thing:
        """Create a project."""
        body = {"project": {"name": name, "description": description}}
        return cast(Thing, part(self._wire.send("POST", "/projects", body), "project"))

    def delete_project(self, project: str) -> None:
        """Delete a project."""
        self._wire.send("DELETE", f"/projects/{segment(self.project(project)['id'])}")

    def create_user(self, name: str, password: str, project_id: str | None) -> Thing:
        """Create a user; ``project_id`` is the default project."""
        body = {"user": {"name": name, "password": password, "default_project_id": project_id}}
        return cast(Thing, part(self._wire.send("POST", "/users", body), "user"))

    def change_user(self, user: str, **changes: Any) -> Thing:
        """Change the given attributes of a user."""
        answer = self._wire.send("PATCH", f"/users/{segment(self.user(user)['id'])}", {"user": changes})
        return cast(Thing, part(answer, "user"))

    def delete_user(self, user: str) -> None:
        """Delete a user."""
        self._wire.send("DELETE", f"/users/{segment(self.user(user)['id'])}")

    def grant(self, user: str, project: str | None, role: str) -> None:
        """Grant a role in a project, or with ``project`` None on the system: an administrator of the site."""
        self._wire.send("PUT", self._grant(user, project, role))

    def revoke(self, user: str, project: str | None, role: str) -> None:
        """Revoke a role in a project, or with ``project`` None on the system."""
        self._wire.send("DELETE", self._grant(user, project, role))

    def roles(self, user: str) -> list[Thing]:
        """Return the user's role assignments, with names of projects."""
        query = {"user.id": self.user(user)["id"], "include_names": "true"}
        return cast(list[Thing], part(self._wire.get("/role_assignments", query), "role_assignments"))

    def credentials(self) -> list[Thing]:
        """Return the application credentials of the logged-in user."""
        return cast(list[Thing], part(self._wire.get(self._credentials()), "application_credentials"))

    def create_credential(self, name: str, roles: list[str], expires_at: str | None) -> Thing:
        """Create an application credential. Only this answer contains its ``secret``."""
        body: Thing = {"name": name, "expires_at": expires_at}
        if roles:
            body["roles"] = [{"name": role} for role in roles]
        answer = self._wire.send("POST", self._credentials(), {"application_credential": body})
        return cast(Thing, part(answer, "application_credential"))

    def delete_credential(self, credential: str) -> None:
        """Delete an application credential of the logged-in user."""
        match = choose(self.credentials(), credential, "credential")
        self._wire.send("DELETE", f"{self._credentials()}/{segment(match['id'])}")

    def project(self, name: str) -> Thing:
        """Return a project. Raises NotFound or Ambiguous."""
        return choose(self.projects(), name, "project")

    def user(self, name: str) -> Thing:
        """Return a user. Raises NotFound or Ambiguous."""
        return choose(self.users(), name, "user")

    def _grant(self, user: str, project: str | None, role: str) -> str:
        place = "/system" if project is None else f"/projects/{segment(self.project(project)['id'])}"
        return f"{place}/users/{segment(self.user(user)['id'])}/roles/{segment(role)}"

    def _credentials(self) -> str:
        return f"/users/{segment(self._wire.user_id)}/application_credentials"
