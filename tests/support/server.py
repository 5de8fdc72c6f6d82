"""A real `stoker serve` as a process of its own, that can be stopped, killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from support import databases

STOKER = [sys.executable, "-m", "stoker_client.cli.main"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


@dataclass
class Served:
    """``environment`` is what a shell needs: OS_* of the administrator, nothing of the developer's own."""

    folder: Path
    port: int
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    #: Another process on the same database, which knows the administrator's login.
    login_of: Served | None = None
    _token: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    def start(self) -> None:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_", "XDG_"))
        }
        plain = {**inherited, "HOME": str(home), "PYTHONWARNINGS": "default"}
        command = [*STOKER, "serve", "--port", str(self.port), "--state-dir", str(self.state_dir), *self.flags]
        with self.folder.joinpath("serve.out").open("ab") as output:
            self.process = subprocess.Popen(command, env=plain, stdout=output, stderr=output)
        self._until_healthy()
        if self.login_of is not None:
            self.environment = {**self.login_of.environment, "OS_AUTH_URL": f"{self.url}/identity/v3"}
            return
        exports = subprocess.run(
            [*STOKER, "env", "--state-dir", str(self.state_dir)], env=plain, check=True, capture_output=True, text=True
        )
        words = [line.removeprefix("export ").partition("=") for line in exports.stdout.splitlines()]
        self.environment = {**plain, **{name: value.strip("'") for name, _, value in words}}

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)

    def kill9(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=20)

    def restart(self) -> None:
        self.start()

    @property
    def output(self) -> str:
        return self.folder.joinpath("serve.out").read_text()

    def run(self, *words: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        """The `stoker` command as the administrator."""
        done = subprocess.run(
            [*STOKER, *words], env=self.environment, capture_output=True, text=True, check=False, timeout=120, **more
        )
        if check and done.returncode:
            raise AssertionError(f"stoker {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-o", "json").stdout)

    def until(self, true: Callable[[], bool], seconds: float = 30) -> None:
        """Wait for something that comes by itself."""
        limit = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < limit, f"it did not come:\n{self.output}"
            time.sleep(0.02)

    def login(self, **changes: str) -> Answer:
        said = {**self.environment, **changes}
        user = {"name": said["OS_USERNAME"], "domain": {"name": "Default"}, "password": said["OS_PASSWORD"]}
        scope = {"project": {"name": said["OS_PROJECT_NAME"], "domain": {"name": "Default"}}}
        auth = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}
        return self.request("POST", "/identity/v3/auth/tokens", {"auth": auth})

    @property
    def token(self) -> str:
        if self._token is None:
            self._token = self.login().headers["X-Subject-Token"]
        return self._token

    @cached_property
    def project(self) -> str:
        headers = {"X-Auth-Token": self.token, "X-Subject-Token": self.token}
        return str(self.request("GET", "/identity/v3/auth/tokens", headers=headers).body["token"]["project"]["id"])

    def heat(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """A call below /v1/{project}, with the administrator's token. Redirects are answers."""
        return self.request(verb, f"/v1/{self.project}{path}", body, {"X-Auth-Token": self.token, **headers})

    def request(
        self, verb: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 60
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, dict(headers or {}), method=verb)
        if data is not None and not request.has_header("Content-type"):
            request.add_header("Content-Type", "application/json")
        try:
            with _OPENER.open(request, timeout=timeout) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def _until_healthy(self) -> None:
        assert self.process is not None
        until = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError):
                if self.request("GET", "/healthz", timeout=2).status == 200:
                    return
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"stoker serve did not come up:\n{self.output}")
            time.sleep(0.02)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


@contextmanager
def served(
    folder: Path,
    *flags: str,
    database: str | None = None,
    clouds_yaml: bool = False,
    login_of: Served | None = None,
) -> Iterator[Served]:
    """Started; ended at the end, with every local server it has."""
    said = (*flags, *(() if clouds_yaml else ("--no-clouds-yaml",)))
    if database:
        said = (*said, "--database", database)
    server = Served(folder, free_port(), said, login_of=login_of)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            try:
                server.stop()
            except subprocess.TimeoutExpired:
                server.kill9()
        end_local_servers(server.state_dir / "local")


@contextmanager
def served_on(request: pytest.FixtureRequest, folder: Path, *flags: str) -> Iterator[Served]:
    """As ``served``, on the database that the fixture's parameter names: ``sqlite`` or ``postgresql``."""
    with ExitStack() as left:
        database = None
        if request.param == "postgresql":
            server = request.getfixturevalue("postgresql_server")
            database = left.enter_context(databases.postgresql_url(server))
        yield left.enter_context(served(folder, *flags, database=database))


def end_local_servers(folder: Path) -> None:
    """Whatever a test's local servers left: found by the marker they carry."""
    from stoker.servers.local import marked

    for root in folder.glob("*"):
        for pid in marked(root.name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
