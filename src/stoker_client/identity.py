"""Projects, users, roles and application credentials over Keystone's API."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from stoker_client.errors import ClientError
from stoker_client.parts import part, segment

if TYPE_CHECKING:
    from stoker_client.wire import Wire

Thing = dict[str, Any]


class Identity:
    """Things are named by name or by id. Most calls are for administrators."""

    def __init__(self, wire: Wire) -> None:
        self._orchestration = wire

    @cached_property
    def _wire(self) -> Wire:
        return self._orchestration.to("identity")

    def projects(self) -> list[Thing]:
        return cast(list[Thing], part(self._wire.get("/projects"), "projects"))

    def users(self) -> list[Thing]:
        return cast(list[Thing], part(self._wire.get("/users"), "users"))

    def create_project(self, name: str, description: str) -> Thing:
        body = {"project": {"name": name, "description": description}}
        return cast(Thing, part(self._wire.send("POST", "/projects", body), "project"))

    def delete_project(self, project: str) -> None:
        self._wire.send("DELETE", f"/projects/{segment(self.project(project)['id'])}")

    def create_user(self, name: str, password: str, project_id: str | None) -> Thing:
        body = {"user": {"name": name, "password": password, "default_project_id": project_id}}
        return cast(Thing, part(self._wire.send("POST", "/users", body), "user"))

    def change_user(self, user: str, **changes: Any) -> Thing:
        answer = self._wire.send("PATCH", f"/users/{segment(self.user(user)['id'])}", {"user": changes})
        return cast(Thing, part(answer, "user"))

    def delete_user(self, user: str) -> None:
        self._wire.send("DELETE", f"/users/{segment(self.user(user)['id'])}")

    def grant(self, user: str, project: str, role: str) -> None:
        self._wire.send("PUT", self._grant(user, project, role))

    def revoke(self, user: str, project: str, role: str) -> None:
        self._wire.send("DELETE", self._grant(user, project, role))

    def roles(self, user: str) -> list[Thing]:
        """Of the user, with the projects they are in."""
        query = {"user.id": self.user(user)["id"], "include_names": "true"}
        return cast(list[Thing], part(self._wire.get("/role_assignments", query), "role_assignments"))

    def credentials(self) -> list[Thing]:
        """One's own."""
        return cast(list[Thing], part(self._wire.get(self._credentials()), "application_credentials"))

    def create_credential(self, name: str, roles: list[str], expires_at: str | None) -> Thing:
        """Its ``secret`` is never told again."""
        said: Thing = {"name": name, "expires_at": expires_at}
        if roles:
            said["roles"] = [{"name": role} for role in roles]
        answer = self._wire.send("POST", self._credentials(), {"application_credential": said})
        return cast(Thing, part(answer, "application_credential"))

    def delete_credential(self, credential: str) -> None:
        found = _of_name(self.credentials(), credential, "application credential")
        self._wire.send("DELETE", f"{self._credentials()}/{segment(found['id'])}")

    def ec2_credentials(self) -> list[Thing]:
        """One's own, with their secrets."""
        return cast(list[Thing], part(self._wire.get(self._ec2()), "credentials"))

    def create_ec2_credential(self) -> Thing:
        """For the project of the token."""
        return cast(Thing, part(self._wire.send("POST", self._ec2(), {}), "credential"))

    def delete_ec2_credential(self, access: str) -> None:
        self._wire.send("DELETE", f"{self._ec2()}/{segment(access)}")

    def project(self, name: str) -> Thing:
        return _of_name(self.projects(), name, "project")

    def user(self, name: str) -> Thing:
        return _of_name(self.users(), name, "user")

    def _grant(self, user: str, project: str, role: str) -> str:
        place = f"/projects/{segment(self.project(project)['id'])}/users/{segment(self.user(user)['id'])}"
        return f"{place}/roles/{segment(role)}"

    def _ec2(self) -> str:
        return f"/users/{segment(self._wire.user_id)}/credentials/OS-EC2"

    def _credentials(self) -> str:
        return f"/users/{segment(self._wire.user_id)}/application_credentials"


def _of_name(things: list[Thing], name: str, kind: str) -> Thing:
    """By id or name. Raises ClientError."""
    for thing in things:
        if name in (thing["id"], thing["name"]):
            return thing
    raise ClientError(f"there is no {kind} {name}")
