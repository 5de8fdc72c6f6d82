"""
A real Keystone from PyPI on SQLite, in a separate virtual environment, because its requirements conflict with Stoker's.

The installation contains a database with the tests' users. Each Keystone starts with a copy of that database.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from support import waiting
from support.clouds import write_clouds
from support.installations import Installation, make_environment, plain_environment, run
from support.ports import free_port
from support.waiting import answers

_RELEASE = "keystone==30.0.0"
#: The users and their passwords. The first one is Keystone's administrator.
ADMIN, SERVICE, DOMAIN_ADMIN = ("admin", "first"), ("stoker", "second"), ("heat_domain_admin", "third")
DOMAIN = "heat"
_CONFIG = """\
[DEFAULT]
log_file = {folder}/keystone.log
[database]
connection = sqlite:///{folder}/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = {folder}/fernet
[fernet_receipts]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[cache]
enabled = true
backend = dogpile.cache.memory
[identity]
password_hash_rounds = 4
"""


@dataclass
class Keystone:
    """A Keystone process. ``release`` is the folder that ``KEYSTONE`` has filled."""

    release: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v3"

    def start(self) -> None:
        program = Path(__file__).with_name("keystone_wsgi.py")
        # -P: this folder contains a module with the name of one that must be imported
        command = [str(self.release / "bin" / "python"), "-P", str(program), str(self.folder), str(self.port)]
        with self.folder.joinpath("out").open("ab") as output:
            self.process = subprocess.Popen(command, env=_environment(), stdout=output, stderr=output)
        process, output = self.process, self.folder / "out"
        waiting.until(lambda: process.poll() is not None or answers(self.url), 180, lambda: "Keystone does not answer")
        assert process.poll() is None, output.read_text()[-2000:]

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None

    def session(self, login: tuple[str, str] = ADMIN, project: str = "admin", **more: Any) -> Session:
        names = {"user_domain_name": "Default", "project_domain_name": "Default", "project_name": project, **more}
        return Session(auth=v3.Password(auth_url=self.url, username=login[0], password=login[1], **names))

    @cached_property
    def admin(self) -> Session:
        return self.session()

    def request(self, verb: str, path: str, body: Any = None) -> Any:
        """Send a request as the administrator and return the body of the answer."""
        answer = self.admin.request(f"{self.url}{path}", verb, json=body)
        return answer.json() if answer.content else None

    def named(self, kind: str, name: str, **query: str) -> Any:
        """Return the project, user, role or domain with that name, or None."""
        asked = "&".join(f"{key}={value}" for key, value in {"name": name, **query}.items())
        entries = self.request("GET", f"/{kind}?{asked}")[kind]
        return entries[0] if entries else None

    def add_project(self, name: str) -> str:
        return str(self.request("POST", "/projects", {"project": {"name": name}})["project"]["id"])

    def add_user(self, name: str, password: str, project_id: str, *roles: str) -> str:
        user_id = self.request("POST", "/users", {"user": {"name": name, "password": password}})["user"]["id"]
        for role in roles:
            self.request("PUT", f"/projects/{project_id}/users/{user_id}/roles/{self.named('roles', role)['id']}")
        return str(user_id)

    def add_domain(self, name: str, administrator: str, password: str) -> None:
        """Add a domain with a user who administers it."""
        domain = self.request("POST", "/domains", {"domain": {"name": name}})["domain"]["id"]
        user = {"name": administrator, "password": password, "domain_id": domain}
        user_id = self.request("POST", "/users", {"user": user})["user"]["id"]
        self.request("PUT", f"/domains/{domain}/users/{user_id}/roles/{self.named('roles', 'admin')['id']}")

    def add_service(self, kind: str, url: str) -> None:
        """Add a service with a public endpoint to the catalog."""
        service = self.request("POST", "/services", {"service": {"type": kind, "name": kind}})["service"]["id"]
        endpoint = {"service_id": service, "interface": "public", "url": url, "region_id": "RegionOne"}
        self.request("POST", "/endpoints", {"endpoint": endpoint})

    def environment(self, user: str, password: str, project: str) -> Mapping[str, str]:
        """Return the environment for the `openstack` command."""
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": password,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": "RegionOne",
        }


def flags(
    keystone: Keystone,
    folder: Path,
    *,
    login: tuple[str, str] = SERVICE,
    domain: tuple[str, str, str] = (DOMAIN, *DOMAIN_ADMIN),
    timeout: int = 120,
    **changes: str,
) -> list[str]:
    """
    Return the options of the Stoker in ``folder`` for this Keystone, with both logins in its clouds.yaml.

    ``login``: Stoker's own user and its password. ``domain``: the domain of users of resources, with its administrator
    and that user's password. ``timeout``: the seconds that Keystone may take to answer, many on a busy machine.
    """
    settings = {
        "identity_mode": "keystone",
        "keystone_auth_url": keystone.url,
        "keystone_cloud": "own",
        "stack_domain_cloud": "domain",
        **changes,
    }
    name, *administrator = domain
    entries = {
        "own": (login, {"project_name": "service", "user_domain_name": "Default", "project_domain_name": "Default"}),
        "domain": (administrator, {"user_domain_name": name, "domain_name": name}),
    }
    url = settings["keystone_auth_url"]
    clouds = {
        entry: {"auth": {"auth_url": url, "username": user, "password": password, **names}, "api_timeout": timeout}
        for entry, ((user, password), names) in entries.items()
    }
    write_clouds(folder, clouds)
    return [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)]


@contextmanager
def keystone(release: Path, folder: Path) -> Iterator[Keystone]:
    running = Keystone(release, folder, free_port())
    shutil.copytree(release / "template", folder, dirs_exist_ok=True)
    folder.joinpath("keystone.conf").write_text(_CONFIG.format(folder=folder))
    try:
        running.start()
        yield running
    finally:
        running.stop()


def _build(release: Path) -> None:
    """Create the environment, and a database with all users."""
    make_environment(release, [_RELEASE])
    folder = release / "template"
    for name in ("fernet", "credential"):
        folder.joinpath(name).mkdir(mode=0o700, parents=True)
    folder.joinpath("keystone.conf").write_text(_CONFIG.format(folder=folder))
    manage = (str(release / "bin" / "keystone-manage"), "--config-file", str(folder / "keystone.conf"))
    run(*manage, "db_sync")
    owner = ("--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid()))
    run(*manage, "fernet_setup", *owner)
    run(*manage, "credential_setup", *owner)
    run(*manage, "bootstrap", "--bootstrap-password", ADMIN[1], "--bootstrap-region-id", "RegionOne")
    server = Keystone(release, folder, free_port())
    try:
        server.start()
        _populate(server)
    finally:
        server.stop()


def _populate(keystone: Keystone) -> None:
    """Prepare Keystone as operators do for Heat: a role, a domain with an administrator, and a service user."""
    keystone.request("POST", "/roles", {"role": {"name": "heat_stack_user"}})
    service = keystone.add_project("service")
    keystone.add_user(*SERVICE, service, "service")
    keystone.add_domain(DOMAIN, *DOMAIN_ADMIN)


def _environment() -> dict[str, str]:
    return {**plain_environment(), "PYTHONWARNINGS": "ignore"}


KEYSTONE = Installation(_RELEASE, _build)
