"""
A real Keystone from PyPI, on SQLite: in a virtual environment of its own, as what it needs would be in our way.

Making it takes a minute, so it is made once for this machine and kept; every run begins with a copy of its database.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from support.server import free_port

RELEASE = "keystone==30.0.0"
#: Who is in it, with their passwords. The first one is Keystone's own administrator.
ADMIN, SERVICE, DOMAIN_ADMIN = ("admin", "first"), ("stoker", "second"), ("heat_domain_admin", "third")
DOMAIN = "heat"
_HOME = Path.home() / ".cache" / "stoker-tests" / RELEASE.replace("==", "-")
_CONFIG = """\
[DEFAULT]
log_file = {folder}/keystone.log
[database]
connection = sqlite:///{folder}/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[cache]
enabled = false
[identity]
password_hash_rounds = 4
"""


@dataclass
class Keystone:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v3"

    def start(self) -> None:
        program = Path(__file__).with_name("keystone_wsgi.py")
        # -P: this folder has a module of the same name as what is to be imported
        command = [str(_HOME / "bin" / "python"), "-P", str(program), str(self.folder), str(self.port)]
        with self.folder.joinpath("out").open("ab") as output:
            self.process = subprocess.Popen(command, env=_plain(), stdout=output, stderr=output)
        limit = time.monotonic() + 60
        while not self._answers():
            assert self.process.poll() is None, self.folder.joinpath("out").read_text()[-2000:]
            assert time.monotonic() < limit, "Keystone does not answer"
            time.sleep(0.1)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)
            self.process = None

    def session(self, login: tuple[str, str] = ADMIN, project: str = "admin", **more: Any) -> Session:
        names = {"user_domain_name": "Default", "project_domain_name": "Default", "project_name": project, **more}
        return Session(auth=v3.Password(auth_url=self.url, username=login[0], password=login[1], **names))

    @cached_property
    def admin(self) -> Session:
        return self.session()

    def request(self, verb: str, path: str, body: Any = None) -> Any:
        """As the administrator; the answer's body."""
        answer = self.admin.request(f"{self.url}{path}", verb, json=body)
        return answer.json() if answer.content else None

    def named(self, kind: str, name: str, **query: str) -> Any:
        """The project, user, role or domain of that name; None without one."""
        asked = "&".join(f"{key}={value}" for key, value in {"name": name, **query}.items())
        found = self.request("GET", f"/{kind}?{asked}")[kind]
        return found[0] if found else None

    def add_project(self, name: str) -> str:
        return str(self.request("POST", "/projects", {"project": {"name": name}})["project"]["id"])

    def add_user(self, name: str, password: str, project_id: str, *roles: str) -> str:
        made = self.request("POST", "/users", {"user": {"name": name, "password": password}})["user"]["id"]
        for role in roles:
            self.request("PUT", f"/projects/{project_id}/users/{made}/roles/{self.named('roles', role)['id']}")
        return str(made)

    def add_service(self, kind: str, url: str) -> None:
        """An entry of the catalog."""
        service = self.request("POST", "/services", {"service": {"type": kind, "name": kind}})["service"]["id"]
        endpoint = {"service_id": service, "interface": "public", "url": url, "region_id": "RegionOne"}
        self.request("POST", "/endpoints", {"endpoint": endpoint})

    def environment(self, user: str, password: str, project: str) -> Mapping[str, str]:
        """What the `openstack` command needs."""
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

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.url, timeout=10):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False


def flags(keystone: Keystone, **changes: str) -> list[str]:
    """What Stoker is started with."""
    said = {
        "identity_mode": "keystone",
        "keystone_auth_url": keystone.url,
        "keystone_user": SERVICE[0],
        "keystone_password": SERVICE[1],
        "stack_user_domain": DOMAIN,
        "stack_domain_admin": DOMAIN_ADMIN[0],
        "stack_domain_admin_password": DOMAIN_ADMIN[1],
        **changes,
    }
    return [word for name, value in said.items() for word in (f"--{name.replace('_', '-')}", value)]


@contextmanager
def keystone(folder: Path) -> Iterator[Keystone]:
    """Raises pytest's skip, or under CI its failure, where it cannot be had."""
    _prepared()
    running = Keystone(folder, free_port())
    shutil.copytree(_HOME / "template", folder, dirs_exist_ok=True)
    folder.joinpath("keystone.conf").write_text(_CONFIG.format(folder=folder))
    running.start()
    try:
        yield running
    finally:
        running.stop()


def _prepared() -> None:
    """The environment and a database with everybody in it. One process makes it, others wait."""
    _HOME.mkdir(parents=True, exist_ok=True)
    with _HOME.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _HOME.joinpath("template").exists():
            _install()
            _make_template(_HOME / "template.new")
            _HOME.joinpath("template.new").rename(_HOME / "template")


def _install() -> None:
    commands = ([sys.executable, "-m", "venv", str(_HOME)], [str(_HOME / "bin" / "pip"), "install", "-q", RELEASE])
    for command in commands:
        try:
            subprocess.run(command, env=_plain(), capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = f"{RELEASE} cannot be had from PyPI: {getattr(error, 'stderr', error)}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)


def _make_template(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for each in ("fernet", "credential"):
        folder.joinpath(each).mkdir(mode=0o700, parents=True)
    folder.joinpath("keystone.conf").write_text(_CONFIG.format(folder=folder))
    _manage(folder, "db_sync")
    owner = ("--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid()))
    _manage(folder, "fernet_setup", *owner)
    _manage(folder, "credential_setup", *owner)
    _manage(folder, "bootstrap", "--bootstrap-password", ADMIN[1], "--bootstrap-region-id", "RegionOne")
    made = Keystone(folder, free_port())
    made.start()
    try:
        _populate(made)
    finally:
        made.stop()


def _populate(keystone: Keystone) -> None:
    """What an operator does for Heat: its role, its domain with an administrator, and a user for the service."""
    keystone.request("POST", "/roles", {"role": {"name": "heat_stack_user"}})
    service = keystone.add_project("service")
    keystone.add_user(*SERVICE, service, "service")
    domain = keystone.request("POST", "/domains", {"domain": {"name": DOMAIN}})["domain"]["id"]
    user = {"name": DOMAIN_ADMIN[0], "password": DOMAIN_ADMIN[1], "domain_id": domain}
    made = keystone.request("POST", "/users", {"user": user})["user"]["id"]
    admin = keystone.named("roles", "admin")["id"]
    keystone.request("PUT", f"/domains/{domain}/users/{made}/roles/{admin}")


def _manage(folder: Path, *words: str) -> None:
    command = [str(_HOME / "bin" / "keystone-manage"), "--config-file", str(folder / "keystone.conf"), *words]
    done = subprocess.run(command, env=_plain(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"keystone-manage {words[0]}: {done.stderr[-2000:]}"


def _plain() -> dict[str, str]:
    """Nothing of the developer's own, nor of this interpreter's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
    return {**kept, "PYTHONWARNINGS": "ignore"}


if __name__ == "__main__":  # have it made ahead of the tests
    _prepared()
    sys.exit()
