"""Keystone's API: projects, users, roles and application credentials."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from stoker_client.collection import Anything, Collection, part, segment

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Identity:
    """Calls to Keystone. References are names, ids or prefixes of ids. Most calls require an administrator."""

    def __init__(self, wire: Wire) -> None:
        self._orchestration = wire

    @cached_property
    def _wire(self) -> Wire:
        return self._orchestration.to("identity")

    @cached_property
    def projects(self) -> Collection[Anything]:
        """The projects that the user may see."""
        return Collection(self._wire, "/projects", "project", wraps_body=True)

    @cached_property
    def users(self) -> Collection[Anything]:
        """All users."""
        return Collection(self._wire, "/users", "user", wraps_body=True)

    @cached_property
    def credentials(self) -> Collection[Anything]:
        """The application credentials of the logged-in user."""
        path = f"/users/{segment(self._wire.user_id)}/application_credentials"
        return Collection(self._wire, path, "credential", key="application_credential", wraps_body=True)

    def grant(self, user: str, project: str | None, role: str) -> None:
        """Grant a role in a project, or with ``project`` None on the system: an administrator of the site."""
        self._wire.send("PUT", self._grant(user, project, role))

    def revoke(self, user: str, project: str | None, role: str) -> None:
        """Revoke a role in a project, or with ``project`` None on the system."""
        self._wire.send("DELETE", self._grant(user, project, role))

    def roles(self, user: str) -> list[Anything]:
        """Return the user's role assignments, with names of projects."""
        query = {"user.id": self.users.find_id(user), "include_names": "true"}
        return part(self._wire.get("/role_assignments", query), "role_assignments")

    def _grant(self, user: str, project: str | None, role: str) -> str:
        place = "/system" if project is None else f"/projects/{segment(self.projects.find_id(project))}"
        return f"{place}/users/{segment(self.users.find_id(user))}/roles/{segment(role)}"
