"""A real `stoker serve` as a process that can be stopped, killed and restarted."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from stoker.commands import login
from stoker.settings import describe_settings
from support import databases, forked, waiting
from support.clock import FakeTime
from support.connection_pool import ConnectionPool
from support.forked import Forked
from support.ports import free_port

#: For several processes on one database.
SHARED_SECRET = ("--secret-key", "a secret that all processes share")
#: Generous, because other work may keep the machine busy.
_START_SECONDS, _STOP_SECONDS = 120, 60
#: Tests trust their own scripts.
LOCAL_SERVERS = "--local-servers-unsafe"
STOKER = [sys.executable, "-m", "stoker_client.cli.main"]


@dataclass
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


class HeatClient(ABC):
    """Who calls Heat's API in one project. Paths are those below the project's."""

    @abstractmethod
    def heat(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Call a path below /v1/{project}. Redirects are returned, not followed."""

    def create_stack(self, name: str, template: Any, **more: Any) -> str:
        """Create a stack and return its path."""
        answer = self.heat("POST", "/stacks", {"stack_name": name, "template": template, **more})
        assert answer.status == 201, answer.raw
        return f"/stacks/{name}/{answer.body['stack']['id']}"

    def create(self, nouns: str, **body: Any) -> dict[str, Any]:
        """Add an object to a list, such as ``software_configs``, and return the object."""
        answer = self.heat("POST", f"/{nouns}", body)
        assert answer.status < 300, answer.raw
        created: dict[str, Any] = answer.body[nouns.removesuffix("s")]
        return created

    def create_config(self, config: Any = "#!/bin/sh\n", **more: Any) -> str:
        """Create a config, by default of a script, and return its id."""
        body = {"name": "c", "group": "script", "config": config, **more}
        return str(self.create("software_configs", **body)["id"])

    def stack(self, path: str) -> dict[str, Any]:
        """Return the current state of a stack."""
        stack: dict[str, Any] = self.heat("GET", path).body["stack"]
        return stack

    def await_stack(self, path: str, status: str = "CREATE_COMPLETE", seconds: float = 90) -> dict[str, Any]:
        """Wait until the stack has this status, and return the stack. Another end is an error."""

        def has_status() -> bool:
            stack = self.stack(path)
            assert stack["stack_status"] == status or not stack["stack_status"].endswith("_FAILED"), stack
            return bool(stack["stack_status"] == status)

        waiting.until(has_status, seconds, lambda: f"{path} is not {status}")
        return self.stack(path)

    def outputs(self, path: str) -> dict[str, Any]:
        """Return the outputs of a stack by name."""
        return {output["output_key"]: output["output_value"] for output in self.stack(path)["outputs"]}


@dataclass
class Served(HeatClient):
    """A server process. ``environment`` has the OS_* variables of the administrator and none of the developer's."""

    folder: Path
    port: int
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | Forked | None = None
    #: Whether the process is forked from one that has imported the program, which takes a third of the time.
    is_forked: bool = True
    #: Another process on the same database, which has the administrator's login.
    login_of: Served | None = None
    #: The CA of the server's certificate, if it serves HTTPS.
    ca_file: Path | None = None
    #: The address that it listens on.
    host: str = "127.0.0.1"
    #: Additional variables of a process that is not forked, such as those of ``faketime``.
    variables: Mapping[str, str] = field(default_factory=dict)
    _token: str | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.ca_file else 'http'}://{self.host}:{self.port}"

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    @property
    def database(self) -> str | None:
        """The URL of its database, if that is not in the state directory."""
        return self.flags[self.flags.index("--database") + 1] if "--database" in self.flags else None

    def start(self) -> None:
        """Start the process and wait until it answers."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_", "XDG_"))
        }
        plain = {**inherited, "HOME": str(home), "PYTHONWARNINGS": "default"}
        flags, secrets = move_secrets(self.flags)
        words = ["serve", "--port", str(self.port), "--state-dir", str(self.state_dir), *flags]
        with self.folder.joinpath("serve.out").open("ab") as output:
            if self.is_forked:
                self._prepare_database()
                self.process = Forked(words, {**plain, **secrets}, output, output)
            else:
                self.process = subprocess.Popen(
                    [*STOKER, *words], env={**plain, **secrets, **self.variables}, stdout=output, stderr=output
                )
        self._until_healthy()
        if self.login_of is not None:
            self.environment = {**self.login_of.environment, "OS_AUTH_URL": f"{self.url}/identity/v3"}
            return
        self.environment = {**plain, **login.read_variables(self.state_dir, login.at_keystone(self.state_dir))}

    def _prepare_database(self) -> None:
        """Copy a migrated database for the first start, because the migrations take a third of its time."""
        path = self.state_dir / "stoker.db"
        if "--database" not in self.flags and not path.exists():
            self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy(databases.sqlite_template(), path)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=_STOP_SECONDS)

    def kill9(self) -> None:
        """Send SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=_STOP_SECONDS)

    def end(self) -> None:
        """End the process in any state."""
        self._connections.close()
        if self.process is not None and self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill9()

    def restart(self) -> None:
        """Start the process again, with the same state."""
        self.start()

    @property
    def output(self) -> str:
        """The output of all processes so far."""
        return self.folder.joinpath("serve.out").read_text()

    def run(
        self, *words: str, check: bool = True, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the `stoker` command, by default as the administrator."""
        done = forked.run(list(words), environment or self.environment, timeout=120)
        if check and done.returncode:
            raise AssertionError(f"stoker {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *words: str) -> Any:
        """Run the `stoker` command with ``-o json`` and return the decoded output."""
        return json.loads(self.run(*words, "-o", "json").stdout)

    def until(self, true: Callable[[], bool], seconds: float = 90) -> None:
        """Wait until ``true`` returns true, for events without a notification."""
        waiting.until(true, seconds, lambda: f"it did not come:\n{self.output}")

    def login(self, **changes: str) -> Answer:
        """Log in as the administrator. ``changes`` override OS_* variables."""
        variables = {**self.environment, **changes}
        user = {"name": variables["OS_USERNAME"], "domain": {"name": "Default"}, "password": variables["OS_PASSWORD"]}
        scope = {"project": {"name": variables["OS_PROJECT_NAME"], "domain": {"name": "Default"}}}
        return self.log_in(user, scope)

    def log_in(self, user: Mapping[str, Any], scope: Any = None, **headers: str) -> Answer:
        """Log in with a password. ``user`` has the password, and an id or a name with a domain."""
        auth = {"identity": {"methods": ["password"], "password": {"user": user}}}
        body = {"auth": {**auth, **({} if scope is None else {"scope": scope})}}
        return self.request("POST", "/identity/v3/auth/tokens", body, headers)

    def identity(self, verb: str, path: str, body: Any = None, *, token: str = "", subject: str = "") -> Answer:
        """Call the identity API, by default with the administrator's token. ``subject`` is the token that is meant."""
        headers = {"X-Auth-Token": token or self.token, **({"X-Subject-Token": subject} if subject else {})}
        return self.request(verb, f"/identity/v3{path}", body, headers)

    @property
    def token(self) -> str:
        if self._token is None:
            self._token = self.login().headers["X-Subject-Token"]
        return self._token

    @cached_property
    def project(self) -> str:
        return str(self.identity("GET", "/auth/tokens", subject=self.token).body["token"]["project"]["id"])

    def heat(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request(verb, f"/v1/{self.project}{path}", body, {"X-Auth-Token": self.token, **headers})

    def request(
        self, verb: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 60
    ) -> Answer:
        """Send a request. Error statuses and redirects are returned."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = dict(headers or {})
        if data is not None and "content-type" not in map(str.lower, sent):
            sent["Content-Type"] = "application/json"
        return Answer(*self._connections.request(verb, path, data, sent, timeout))

    @cached_property
    def _connections(self) -> ConnectionPool:
        # Each request to several processes has its own connection, which any of them may accept.
        pool = ConnectionPool(self.host, self.port, self.ca_file, is_kept="--workers" not in self.flags)
        weakref.finalize(self, pool.close)
        return pool

    def _until_healthy(self) -> None:
        assert self.process is not None

        def explain() -> str:
            return f"stoker serve did not come up:\n{self.output}"

        for _ in waiting.attempts(_START_SECONDS, explain):
            with contextlib.suppress(OSError):
                if self.request("GET", "/healthz", timeout=2).status == 200:
                    return
            assert self.process.poll() is None, explain()


def move_secrets(flags: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the flags without those that the service refuses, and the variables that replace them."""
    rest, variables = list(flags), {}
    names = {setting.name for setting in describe_settings()}
    for place in reversed(range(len(rest))):
        name = rest[place].removeprefix("--").replace("-", "_")
        if rest[place].startswith("--") and f"{name}_file" in names:
            variables[f"STOKER_{name.upper()}"] = rest[place + 1]
            del rest[place : place + 2]
    return rest, variables


@contextmanager
def served(
    folder: Path,
    *flags: str,
    database: str | None = None,
    clouds_yaml: bool = False,
    login_of: Served | None = None,
    ca_file: Path | None = None,
    is_forked: bool = True,
    host: str | None = None,
    port: int | None = None,
    clock: FakeTime | None = None,
) -> Iterator[Served]:
    """
    Start a server, and end it and its local servers with the context. Tests that measure memory must not fork it.

    ``host`` is an address of this computer where test machines reach the server. ``port``: default: any free one.
    ``clock`` is the server's clock instead of this computer's.
    """
    options = (*flags, *(() if clouds_yaml else ("--no-clouds-yaml",)))
    if host is not None:
        options = (*options, "--host", host, "--insecure-http")
    if database:
        options = (*options, "--database", database)
    server = Served(folder, port or free_port(), options, login_of=login_of, ca_file=ca_file, is_forked=is_forked)
    server.host = host or server.host
    if clock is not None:
        server.is_forked, server.variables = False, clock.variables
    with ExitStack() as cleanup:  # also ends a server whose start fails
        cleanup.callback(end_local_servers, server.state_dir / "local")
        cleanup.callback(server.end)
        server.start()
        yield server


@contextmanager
def served_on(request: pytest.FixtureRequest, folder: Path, *flags: str, kind: str | None = None) -> Iterator[Served]:
    """As ``served``, on a kind of database, sqlite or postgresql, by default that in the fixture's parameter."""
    with ExitStack() as left:
        database = None
        if (kind or request.param) == "postgresql":
            server = request.getfixturevalue("postgresql_server")
            database = left.enter_context(databases.postgresql_url(server))
        yield left.enter_context(served(folder, *flags, database=database))


def end_local_servers(folder: Path) -> None:
    """Kill the remaining processes of a test's local servers, which carry a marker."""
    from stoker.servers.local_agents import marked

    for root in folder.glob("*"):
        for pid in marked(root.name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
