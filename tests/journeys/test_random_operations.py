"""
Random operations of several clients on stacks whose scripts fail, while agents and servers are killed: what the scripts
traced obeys the rules of docs/actions.md.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support import waiting
from support.agents import OwnAgent, enrolled_agent
from support.processes import list_children
from support.search import examples
from support.server import Served, served_on
from support.templates import define, template

pytestmark = pytest.mark.slow

ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
STACKS = ("one", "two")
#: Operations of each client.
OPERATIONS = 40
#: Each line has the stack, the resource, the action with the value of the input, and the id of the run.
SCRIPT = """#!/bin/sh
me="$deploy_stack_id $deploy_resource_name $deploy_action $v $(basename $STOKER_RUN_DIR)"
echo "$me begin" >>$WORK/runs
sleep 0.0$((v % 10))
case $deploy_action in
DELETE) [ $((v % 5)) -ne 2 ] || [ -e $WORK/failed-$v ] || { touch $WORK/failed-$v; exit 3; } ;;
*) [ $((v % 4)) -ne 3 ] || exit 3 ;;
esac
echo "$me end" >>$WORK/runs
"""
CONFIG = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "v"}],
    configs=[{"actions": [action], "config": SCRIPT, "tool": "script"} for action in ACTIONS],
)


@dataclass(frozen=True)
class Line:
    """One line of a trace."""

    place: tuple[str, str, str]
    action: str
    value: int
    run: str
    has_ended: bool


@dataclass
class Site:
    """Two machines, and the clients that change the stacks on them."""

    stoker: Served
    agents: dict[str, OwnAgent]
    random: random.Random
    values: Iterator[int] = field(default_factory=lambda: count(1))
    answers: Counter[str] = field(default_factory=Counter)
    stopping: threading.Event = field(default_factory=threading.Event)
    errors: list[BaseException] = field(default_factory=list)

    def call(self, verb: str, path: str, body: Any = None) -> Any:
        """Call Heat's API until a process answers. Return the body, or None if the request is refused."""
        while True:
            try:
                answer = self.stoker.heat(verb, path, body)
            except OSError:
                continue  # the process was killed; a repeated request is refused or changes nothing
            assert answer.status < 500 or answer.status == 503, answer.raw
            if answer.status == 503:
                continue
            self.answers[f"{verb} {answer.status}"] += 1
            return answer.body if answer.status < 300 else None

    def template(self, value: int, *, servers: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Return a template with one to three deployments on any of the servers."""
        chosen = servers or tuple(self.random.choice(sorted(self.agents)) for _ in "abc")

        def deployment(server: str, *after: str) -> dict[str, Any]:
            properties = {
                "config": {"get_resource": "config"},
                "server": server,
                "actions": list(ACTIONS),
                "input_values": {"v": value},
            }
            return define("OS::Heat::SoftwareDeployment", **properties) | {"depends_on": list(after)}

        first = "a" if servers or self.random.random() < 0.8 else "renamed"
        resources = {"config": CONFIG, first: deployment(chosen[0])}
        if servers or self.random.random() < 0.7:
            resources["b"] = deployment(chosen[1], first)
        if servers or self.random.random() < 0.4:
            resources["c"] = deployment(chosen[2])
        return template(resources)

    def stack(self, name: str) -> dict[str, Any] | None:
        """Return the stack of this name, or None."""
        listed = self.call("GET", f"/stacks?name={name}")["stacks"]
        return listed[0] if listed else None

    def operate(self) -> None:
        """Run one random operation."""
        name = self.random.choice(STACKS)
        stack, value = self.stack(name), next(self.values)
        if stack is None:
            body = {
                "stack_name": name,
                "template": self.template(value),
                "disable_rollback": self.random.random() < 0.5,
            }
            self.call("POST", "/stacks", body)
            return
        path = f"/stacks/{name}/{stack['id']}"
        kind = self.random.random()
        if kind < 0.55:
            changed = {"template": self.template(value), "disable_rollback": self.random.random() < 0.5}
            self.call("PUT", path, changed)
        elif kind < 0.75:
            action = self.random.choice(["suspend", "resume", "resume", "check", "cancel_without_rollback"])
            self.call("POST", f"{path}/actions", {action: None})
        elif kind < 0.95:
            self.touch_deployment()
        else:
            self.call("DELETE", path)

    def touch_deployment(self) -> None:
        """Cancel or retry a deployment."""
        listed = self.call("GET", "/software_deployments")["software_deployments"]
        if listed:
            id = self.random.choice(listed)["id"]
            verb, body = self.random.choice([("cancel", {}), ("cancel", {"force": True}), ("retry", {}), ("retry", {})])
            self.call("POST", f"/software_deployments/{id}/{verb}", body)

    def guard(self, do: Callable[[], None]) -> None:
        """Run ``do`` in a thread that keeps its error for the test."""
        try:
            do()
        except BaseException as error:  # reported by the test
            self.errors.append(error)

    def run_client(self) -> None:
        for _ in range(OPERATIONS):
            self.operate()
            self.stopping.wait(self.random.random() * 0.2)

    def cause_faults(self) -> None:
        """Kill an agent or a process of the service, again and again."""
        while not self.stopping.wait(0.3 + self.random.random()):
            if self.random.random() < 0.6:
                agent = self.random.choice(sorted(self.agents))
                self.agents[agent].end(signal.SIGKILL)
                self.agents[agent].start()
            else:
                self.kill_service()

    def kill_service(self) -> None:
        assert self.stoker.process is not None
        workers = list_children(self.stoker.process.pid) if "--workers" in self.stoker.flags else []
        if workers:
            os.kill(self.random.choice(workers), signal.SIGKILL)
        else:
            self.stoker.kill9()
            self.stoker.restart()

    def settle(self, name: str) -> dict[str, Any] | None:
        """Wait until the stack is at rest. Return the stack, or None if it does not exist."""
        waiting.until(
            lambda: not str((self.stack(name) or {}).get("stack_status")).endswith("IN_PROGRESS"),
            120,
            lambda: self.explain(name),
        )
        return self.stack(name)

    def explain(self, name: str) -> str:
        """Describe a stack that does not settle."""
        stack = self.stack(name) or {}
        resources = self.call("GET", f"/stacks/{name}/{stack['id']}/resources")["resources"]
        states = [(one["resource_name"], one["resource_status"], one["resource_status_reason"]) for one in resources]
        fields = ("id", "action", "status", "status_reason", "server_id", "config_id")
        listed = self.call("GET", "/software_deployments")["software_deployments"]
        return "\n".join(map(str, [stack, *states, *([one[field] for field in fields] for one in listed)]))

    def finish(self, name: str) -> None:
        """Bring the stack to a complete state, in which all of its scripts succeed."""
        good = (value for value in self.values if value % 4 != 3)
        for _ in range(10):
            stack, template = self.settle(name), self.template(next(good), servers=("m1", "m2", "m1"))
            path = f"/stacks/{name}/{stack['id']}" if stack else ""
            if stack is None:
                self.call("POST", "/stacks", {"stack_name": name, "template": template})
            elif stack["stack_status"].startswith("DELETE"):
                self.call("DELETE", path)
            elif stack["stack_status"].startswith("SUSPEND"):
                self.call("POST", f"{path}/actions", {"resume": None})
            else:
                self.call("PUT", path, {"template": template})
                stack = self.settle(name)
                if stack is not None and stack["stack_status"] == "UPDATE_COMPLETE":
                    return
        raise AssertionError(f"the stack does not complete: {stack}")

    def read_trace(self, server: str) -> list[Line]:
        lines = []
        for text in self.agents[server].lines():
            stack, resource, action, value, run, mark = text.split()
            lines.append(Line((stack, resource, server), action, int(value), run, mark == "end"))
        return lines


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    flags = ("--workers", "2") if request.param == "postgresql" else ()
    with (
        served_on(request, tmp_path, *flags) as stoker,
        enrolled_agent(tmp_path / "m1", stoker, "m1") as first,
        enrolled_agent(tmp_path / "m2", stoker, "m2") as second,
    ):
        yield Site(stoker, {"m1": first, "m2": second}, random.Random())


@pytest.mark.parametrize("seed", range(examples(1)))
def test_random_operations_obey_the_rules(site: Site, seed: int) -> None:
    site.random.seed(seed)
    clients = [threading.Thread(target=site.guard, args=(site.run_client,)) for _ in range(3)]
    faults = threading.Thread(target=site.guard, args=(site.cause_faults,))
    for thread in (*clients, faults):
        thread.start()
    for client in clients:
        client.join()
    site.stopping.set()
    faults.join()
    assert not site.errors, site.errors
    for name in STACKS:
        site.finish(name)
    check_traces(site)


def check_traces(site: Site) -> None:
    traces = {server: site.read_trace(server) for server in site.agents}
    for lines in traces.values():
        begun = Counter(line.run for line in lines if not line.has_ended)
        assert max(begun.values()) == 1, "no run begins twice"
        created: dict[tuple[str, str, str], bool] = {}
        for line in lines:
            if line.action == "CREATE":
                created[line.place] = created.get(line.place, False) or line.has_ended
            elif line.action == "DELETE":
                created[line.place] = False
            elif line.action == "UPDATE" and not line.has_ended:
                assert created.get(line.place), f"an UPDATE without a completed CREATE: {line}"
    check_last_runs(site, traces)


def check_last_runs(site: Site, traces: dict[str, list[Line]]) -> None:
    """Compare the last line of each deployment's trace with its status."""
    servers = {agent.spoken.id: name for name, agent in site.agents.items()}
    deployments = {one["id"]: one for one in site.call("GET", "/software_deployments")["software_deployments"]}
    for name in STACKS:
        stack = site.stack(name)
        assert stack is not None
        resources = site.call("GET", f"/stacks/{name}/{stack['id']}/resources")["resources"]
        for resource in resources:
            if resource["resource_name"] == "config":
                continue
            deployment = deployments.pop(resource["physical_resource_id"])
            server = servers[deployment["server_id"]]
            place = (f"{name}/{stack['id']}", resource["resource_name"], server)
            last = [line for line in traces[server] if line.place == place][-1]
            assert deployment["status"] == "COMPLETE"
            expected = (deployment["action"], deployment["input_values"]["v"], True)
            assert (last.action, last.value, last.has_ended) == expected, deployment
    assert deployments == {}
