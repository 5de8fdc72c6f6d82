"""
The length of the server's paths: modules, calls and SQL statements of one request.

    .venv/bin/python -m bench.paths

One process serves requests on a filled SQLite. A profile function, on every thread, counts the calls of Stoker's own
functions (generators each time they continue) and the modules that they are in, from the request to the response. Each
path is taken several times, and the shortest one counts: without imports, without statements that are compiled for the
first time, and without work in the background.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import structlog
from anyio.from_thread import start_blocking_portal

import stoker
from bench.swarm import enroll_servers
from support.in_process import Inside
from support.templates import config, on, template

_SOURCE = str(Path(stoker.__file__).parent)
#: Rows before the measurement.
_SERVERS, _DEPLOYMENTS = 20, 200
#: Times that each path is taken.
_ROUNDS = 10


class Length(NamedTuple):
    """The length of one path."""

    calls: int
    modules: int
    statements: int


@dataclass
class _Counter:
    """Counts what runs while ``is_on``."""

    is_on: bool = False
    modules: set[str] = field(default_factory=set)
    calls: int = 0

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call of Stoker's own code. Installed with ``setprofile`` on every thread."""
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(_SOURCE):
            self.modules.add(frame.f_code.co_filename)
            self.calls += 1

    def count(self, site: _Site, do: Callable[[], Any]) -> Length:
        """Return the length of the path of ``do``."""
        self.modules, self.calls, before = set(), 0, site.inside.statements
        self.is_on = True
        do()
        self.is_on = False
        return Length(self.calls, len(self.modules), site.inside.statements - before)

    def shortest(self, site: _Site, prepare: Callable[[], Callable[[], Any]]) -> Length:
        """Take the path that ``prepare`` returns several times. Return its length without work in the background."""
        return min(self.count(site, prepare()) for _ in range(_ROUNDS))


@dataclass
class _Site:
    """A site with one enrolled server, and a config with an input and an output."""

    inside: Inside
    server: dict[str, str] = field(default_factory=dict)
    config: str = ""

    def call(self, verb: str, path: str, body: Any = None) -> Any:
        """Call an API as the administrator, Heat's if the path begins with none. Return the decoded body."""
        if not path.startswith("/agent"):
            return self.inside.call(verb, path, body)
        return self.inside.client.request(verb, path, json=body).json()

    def deploy(self, **more: Any) -> dict[str, Any]:
        """Create a deployment of the config on the server."""
        body = {"config_id": self.config, "server_id": self.server["id"], **more}
        deployment: dict[str, Any] = self.call("POST", "/software_deployments", body)["software_deployment"]
        return deployment

    def poll(self, etag: str = "") -> Any:
        """Read the server's document with its agent's key, without waiting."""
        headers = {"Authorization": f"Bearer {self.server['key']}"} | ({"If-None-Match": etag} if etag else {})
        return self.inside.client.get("/agent/v1/document", headers=headers)

    def report(self, config_id: str) -> None:
        """Report the success of a run with the agent's key."""
        response = self.inside.client.post(
            f"/agent/v1/runs/{config_id}/signal",
            json={"deploy_status_code": 0, "deploy_stdout": "", "deploy_stderr": "", "result": "x"},
            headers={"Authorization": f"Bearer {self.server['key']}"},
        )
        if response.status_code >= 300:
            raise RuntimeError(f"report: {response.status_code} {response.text[:300]}")

    def entries(self) -> list[dict[str, Any]]:
        """Return the deployments in the server's document."""
        deployments: list[dict[str, Any]] = self.poll().json()["deployments"]
        return deployments


def _template(server: str) -> dict[str, Any]:
    """Return a template of two deployments, of which the second takes an output of the first."""

    def deployment(value: Any) -> dict[str, Any]:
        return on(server, signal_transport="STOKER_SIGNAL", input_values={"in": value})

    first, second = deployment("x"), deployment({"get_attr": ["first", "result"]})
    return template({"config": config("true", inputs=("in",), outputs=("result",)), "first": first, "second": second})


@contextmanager
def _site(folder: Path) -> Iterator[_Site]:
    with closing(Inside(folder)) as inside, start_blocking_portal() as inside.client.portal:  # one event loop for all
        site = _Site(inside)
        site.config = inside.create_config("true", outputs=[{"name": "result"}])
        servers = enroll_servers(site.call, [f"server-{number}" for number in range(_SERVERS)])
        for number in range(_DEPLOYMENTS):
            site.server = list(servers.values())[number % _SERVERS]
            site.deploy()
        site.server = enroll_servers(site.call, ["measured"])["measured"]
        yield site


def _start_stack(site: _Site) -> str:
    """Create a stack and return the id of its first run."""
    before = {entry["id"] for entry in site.entries()}
    body = {"stack_name": f"s{time.monotonic_ns()}", "template": _template(site.server["id"])}
    site.call("POST", "/stacks", body)
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if new := [entry["id"] for entry in site.entries() if entry["id"] not in before]:
            return str(new[0])
        time.sleep(0.05)
    raise RuntimeError("the stack starts no run")


def _measure(site: _Site, counter: _Counter) -> dict[str, Length]:
    def report_of_a_stack() -> Callable[[], Any]:
        return partial(site.report, _start_stack(site))

    def report_of_a_client() -> Callable[[], Any]:
        return partial(site.report, site.deploy(signal_transport="STOKER_SIGNAL")["config_id"])

    def poll_after_a_change() -> Callable[[], Any]:
        time.sleep(0.2)  # the delivery of what the last poll has sent is recorded in the background
        site.deploy()
        return site.poll

    def poll_again() -> Callable[[], Any]:
        return partial(site.poll, site.poll().headers["ETag"])

    paths: dict[str, Callable[[], Callable[[], Any]]] = {
        "create of a deployment": lambda: site.deploy,
        "create of a deployment with `signal_transport`": lambda: partial(
            site.deploy, signal_transport="STOKER_SIGNAL"
        ),
        "report of a stack's deployment → dependent": report_of_a_stack,
        "poll with a change": poll_after_a_change,
        "unchanged poll": poll_again,
        "result of a client's run": report_of_a_client,
    }
    return {name: counter.shortest(site, prepare) for name, prepare in paths.items()}


def measure() -> dict[str, Length]:
    """Return the length of each path by its name."""
    counter = _Counter()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    threading.setprofile(counter.profile)
    sys.setprofile(counter.profile)
    try:
        with tempfile.TemporaryDirectory(prefix="stoker-paths-") as folder, _site(Path(folder)) as site:
            return _measure(site, counter)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # removes the function, as documented


def main() -> None:
    """Print the table of docs/performance.md."""
    print("| path | modules | calls | statements |\n|---|---|---|---|")
    for name, length in measure().items():
        print(f"| {name} | {length.modules} | {length.calls} | {length.statements} |")


if __name__ == "__main__":
    main()
