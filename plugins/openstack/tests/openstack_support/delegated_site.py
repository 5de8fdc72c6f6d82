"""
A site with the users of a real Keystone and a cloud in memory, in the test's process: Stoker acts for owners of stacks.

As a program, ``delegated_site FOLDER DATABASE KEYSTONE TOKEN PROJECT STACK`` creates a delegation for a stack and dies
before a transaction stores the answer of Keystone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from keystoneauth1.session import Session
from starlette.testclient import TestClient

from stoker import serve, settings
from stoker.store.open import Store
from stoker.work import Work
from stoker_openstack.cloud.delegated_credentials import REVOKE, DelegatedCredentials
from stoker_openstack.cloud.markers import site_id
from stoker_openstack.store import delegations
from stoker_openstack.store.delegations import CloudCredential, Delegation
from support import databases, keystone
from support.clouds import write_clouds
from support.keystone import SERVICE, Keystone
from support.waiting import until

SECRET = b"the secret of the site of these tests"


def load(folder: Path, url: str, **changes: str) -> settings.Settings:
    """Return the settings of a site with the users of the Keystone at ``url``."""
    words = keystone.flags(Keystone(folder, folder, 0), folder, keystone_auth_url=url, **changes)
    flags = {name[2:].replace("-", "_"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    return settings.load({"state_dir": folder, "public_url": "http://testserver", **flags}, {}, None)


@dataclass
class Member:
    """A user with the role member in a project of the user's own."""

    keystone: Keystone
    name: str
    id: str
    project_id: str
    project: str

    @property
    def session(self) -> Session:
        return self.keystone.session((self.name, "secret"), self.project)

    def find_credentials(self) -> list[Any]:
        """Return the user's application credentials."""
        url = f"{self.keystone.url}/users/{self.id}/application_credentials"
        return list(self.session.get(url).json()["application_credentials"])

    def create_credential(self, **more: Any) -> Session:
        """Return a session with a new application credential of the user."""
        from keystoneauth1.identity import v3

        body = {"application_credential": {"name": f"own-{uuid4()}", **more}}
        url = f"{self.keystone.url}/users/{self.id}/application_credentials"
        made = self.session.post(url, json=body).json()["application_credential"]
        return Session(auth=v3.ApplicationCredential(self.keystone.url, made["secret"], made["id"]))

    def role_path(self) -> str:
        """Return the path of the user's role in the project."""
        role = self.keystone.named("roles", "member")["id"]
        return f"/projects/{self.project_id}/users/{self.id}/roles/{role}"


def add_member(running: Keystone, project: Member | None = None) -> Member:
    """Add a user, in a new project or in the project of another user."""
    name = f"user-{uuid4()}"
    project_name = project.project if project else f"project-{name}"
    project_id = project.project_id if project else running.add_project(project_name)
    user_id = running.add_user(name, "secret", project_id, "member")
    return Member(running, name, user_id, project_id, project_name)


class DelegatedSite:
    """The complete program, with running jobs. ``site``: the public id of the site."""

    def __init__(self, store: Store, folder: Path, running: Keystone, **changes: str) -> None:
        self.store, self.keystone = store, running
        self.settings = load(folder, running.url, **changes)
        self.app, self.site = serve.create_app(self.settings, store, SECRET), site_id(SECRET)
        self.client = TestClient(serve.create_asgi(self.app))

    def send(self, session: Session, verb: str, path: str, body: Any = None) -> Any:
        """Send a request to Heat's API in the project of the session."""
        headers = {"X-Auth-Token": session.get_token()}
        return self.client.request(verb, f"/v1/{session.get_project_id()}{path}", json=body, headers=headers)

    def create(self, session: Session, template: Mapping[str, Any], **more: Any) -> Any:
        """Request a new stack."""
        return self.send(session, "POST", "/stacks", {"stack_name": f"s-{uuid4()}", "template": template, **more})

    def end(self, session: Session, path: str, status: str) -> Any:
        """Wait until an operation of the stack at a path has ended with a status; return the stack."""
        shown: dict[str, Any] = {}

        def has_ended() -> bool:
            answer = self.send(session, "GET", f"/stacks/{path}")
            shown.update(answer.json()["stack"])
            return not str(shown["stack_status"]).endswith("IN_PROGRESS")

        until(has_ended)
        assert shown["stack_status"] == status, shown
        return shown

    def delegations(self) -> list[Delegation]:
        """Return the delegations of the database, with ended ones."""
        with self.store.read() as tx:
            return delegations.list_all(tx)

    def credentials(self) -> list[CloudCredential]:
        """Return the credential of each of them."""
        with self.store.read() as tx:
            return [delegations.get_credential(tx, item.credential_id) for item in delegations.list_all(tx)]

    def trusts(self) -> list[str]:
        """Return the ids of this site's trusts at Keystone."""
        session = self.keystone.session(SERVICE, "service")
        url = f"{self.keystone.url}/OS-TRUST/trusts?trustee_user_id={session.get_user_id()}"
        listed = session.get(url).json()["trusts"]
        return [trust["id"] for trust in listed if self.site in trust.get("description", "")]

    def hasten(self) -> None:
        """Let the time pass after which unconfirmed delegations are revoked."""
        for item in self.delegations():
            self.store.write(lambda tx, id=item.id: self.app.work.defer_by(tx, REVOKE, id, {"id": id}, tx.now))


@contextmanager
def delegated_site(store: Store, folder: Path, running: Keystone, **changes: str) -> Iterator[DelegatedSite]:
    """Yield a site whose jobs run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(write_clouds(folder, {})))
        site = DelegatedSite(store, folder, running, **changes)
        site.app.work.start()
        try:
            yield site
        finally:
            site.app.work.stop()
            site.client.close()


def main(folder: Path, database: str, url: str, token: str, project_id: str, stack_id: str) -> None:
    loaded = load(folder, url)
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(write_clouds(folder, {}))
    store = Store(database, keys=databases.keys)
    credentials = DelegatedCredentials(loaded, store, Work(store), site_id(SECRET))
    delegations.save_credential = lambda _tx, _credential: os.kill(os.getpid(), signal.SIGKILL)
    credentials.delegate(token, project_id, stack_id)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
