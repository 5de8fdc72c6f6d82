"""Which script runs on a server, through the command line and a real agent, by what the scripts trace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from journeys.conftest import StackSite
from support.agents import enrolled_agent
from support.server import Served, served
from support.templates import define

pytestmark = pytest.mark.slow

ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
#: Traces its begin and its end, with the value of its input. Files tell a script to fail, or to wait.
SCRIPT = """#!/bin/sh
me=$me$deploy_action$v
echo $me >>$WORK/runs
while [ -e $WORK/hold-$deploy_action ]; do sleep 0.05; done
if [ -e $WORK/fail-$deploy_action ]; then echo "$me broke" >&2; exit 3; fi
echo $me. >>$WORK/runs
"""
CONFIG = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "v"}, {"name": "me", "default": ""}],
    configs=[{"actions": [action], "config": SCRIPT, "tool": "script"} for action in ACTIONS],
)


@pytest.fixture(scope="module")
def stoker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("actions")) as running:
        yield running


class Site(StackSite):
    """The deployments of the stack trace what runs."""

    def resource(self, value: int, **properties: Any) -> dict[str, Any]:
        shared = {"config": {"get_resource": "config"}, "server": self.server, "input_values": {"v": value}}
        return define("OS::Heat::SoftwareDeployment", **{**shared, **properties})

    def template(self, **resources: Any) -> str:
        return super().template(config=CONFIG, **resources)

    @contextmanager
    def background(self, verb: str, *words: str, code: int, **resources: Any) -> Iterator[list[str]]:
        """Run ``stoker stack`` during the block, and expect ``code``. The list has its lines after the block."""
        command = ("stack", verb, self.name, *words)
        if resources:
            command += ("-t", self.template(**resources))
        lines: list[str] = []
        with ThreadPoolExecutor() as pool:
            future = pool.submit(self.stoker.run, *command, check=False)
            yield lines
            done = future.result()
        assert done.returncode == code, done
        lines += (done.stdout + done.stderr).splitlines()

    def tell(self, word: str) -> Path:
        """Create a file that tells scripts what to do."""
        path = self.agent.work / word
        path.touch()
        return path

    def runs(self) -> list[str]:
        """Return the trace since the last call."""
        lines = self.agent.lines()
        self.agent.work.joinpath("runs").unlink(missing_ok=True)
        return lines

    def until(self, *lines: str) -> None:
        """Wait until the trace ends with these lines."""
        self.stoker.until(lambda: self.agent.lines()[-len(lines) :] == list(lines))

    def planned(self, **resources: Any) -> list[str]:
        """Return the runs that a dry run of an update names."""
        shown = self.stack("update", "--dry-run", **resources).splitlines()
        return [line.removeprefix("runs: ") for line in shown if line.startswith("runs: ")]

    def state(self) -> str:
        status: str = self.stoker.json("stack", "show", self.name)["stack_status"]
        return status


@pytest.fixture
def site(stoker: Served, tmp_path: Path) -> Iterator[Site]:
    with enrolled_agent(tmp_path / "agent", stoker, tmp_path.name) as agent:
        yield Site(stoker, agent, tmp_path)


def test_a_failed_update_is_repeated_with_update(site: Site) -> None:
    site.stack("create", "--wait", d=site.resource(1))
    assert site.runs() == ["CREATE1", "CREATE1."]
    failing = site.tell("fail-UPDATE")
    site.stack("update", "--wait", check=False, d=site.resource(2))
    assert site.runs() == ["UPDATE2"]

    assert site.planned(d=site.resource(2)) == [f"UPDATE of d on {site.server}"]
    done = site.stoker.run("deployment", "retry", f"{site.name}/d", "--wait", check=False)
    assert done.stderr == f"stoker: {site.name}/d on {site.server}: exit 3: UPDATE2 broke\n"
    assert site.runs() == ["UPDATE2"]

    failing.unlink()
    site.stack("update", "--wait", d=site.resource(3))
    assert site.runs() == ["UPDATE3", "UPDATE3."]
    history = site.stoker.json("deployment", "history", f"{site.name}/d")
    assert [run["action"] for run in history] == ["UPDATE", "UPDATE", "UPDATE", "CREATE"]


@pytest.mark.parametrize("is_seen", [False, True], ids=["at once", "after some polls"])
def test_a_rollback_names_its_cause_and_an_update_what_it_changes(site: Site, is_seen: bool) -> None:
    script = """#!/bin/sh
    echo $v >>$WORK/runs
    while [ -e $WORK/hold ]; do sleep 0.05; done
    [ $v = 1 ] || { echo "no space left" >&2; exit 3; }
    """
    config = {"type": "OS::Heat::SoftwareConfig"}
    config["properties"] = {"group": "script", "config": script, "inputs": [{"name": "v"}]}
    own = {"own": config, "other": site.resource(1)}
    site.stack("create", "--wait", d=site.resource(1, config={"get_resource": "own"}), **own)
    hold = site.tell("hold") if is_seen else None
    d = site.resource(2, config={"get_resource": "own"})
    with site.background("update", "--rollback", "--wait", code=1, d=d, **own) as lines:
        if hold is not None:
            site.until("2")
            hold.unlink()

    cause = f"d: exit 3 on {site.server}: no space left"
    assert lines[-2:] == [cause, f"stoker: {site.name} is ROLLBACK_COMPLETE"]
    assert {line.split()[2] for line in lines[:-2]} == {site.name, "d"}
    shown = site.stack("show")
    assert cause in " ".join(shown.split())
    events = site.stoker.json("stack", "events", site.name)
    assert [event["resource_name"] for event in events if event["resource_status"].endswith("FAILED")] == [
        "d",
        site.name,
    ]


def test_several_deployments_of_a_stack_are_retried_together(site: Site) -> None:
    failing, hold = site.tell("fail-CREATE"), site.tell("hold-CREATE")
    both = {"d": site.resource(1), "e": site.resource(1, input_values={"v": 1, "me": "e"})}
    site.stack("create", **both)
    site.until("CREATE1")
    hold.unlink()
    site.stoker.until(lambda: site.agent.lines() == ["CREATE1", "eCREATE1"])
    site.stoker.until(
        lambda: {run["status"] for run in site.stoker.json("deployment", "history", f"{site.name}/e")} == {"FAILED"}
    )
    failing.unlink()
    done = site.stoker.run("deployment", "retry", f"{site.name}/d", f"{site.name}/e", "--wait")
    assert done.stdout.splitlines() == [f"deployment {site.name}/{name} runs again" for name in "de"]
    assert site.runs()[2:] == ["CREATE1", "CREATE1.", "eCREATE1", "eCREATE1."]


def test_a_superseded_update_fails(site: Site) -> None:
    site.stack("create", "--wait", d=site.resource(1))
    hold = site.tell("hold-UPDATE")
    with site.background("update", "--wait", code=1, d=site.resource(2)) as lines:
        site.until("UPDATE2")
        site.stack("update", d=site.resource(3))
        site.until("UPDATE2", "UPDATE3")
        hold.unlink()
    assert lines[-1] == f"stoker: {site.name}: superseded by another update (`stoker stack events {site.name}`)"


@pytest.mark.parametrize(
    ("options", "status", "trace"),
    [((), "ROLLBACK_COMPLETE", ["UPDATE2", "UPDATE1", "UPDATE1."]), (("--no-rollback",), "UPDATE_FAILED", ["UPDATE2"])],
)
def test_a_create_and_an_update_are_cancelled(
    site: Site, options: Sequence[str], status: str, trace: Sequence[str]
) -> None:
    hold = site.tell("hold-CREATE")
    site.stack("create", "--rollback", d=site.resource(1))
    site.until("CREATE1")
    site.stack("cancel", "--wait", *options)
    assert site.state() == "CREATE_FAILED"
    with site.background("update", "--wait", code=0, d=site.resource(1)):
        site.until("CREATE1", "CREATE1")  # begins after the agent has stopped the first one
        hold.unlink()
    assert site.runs() == ["CREATE1", "CREATE1", "CREATE1."]

    hold = site.tell("hold-UPDATE")
    with site.background("update", "--wait", code=1, d=site.resource(2)) as lines:
        site.until("UPDATE2")
        with site.background("cancel", "--wait", *options, code=0) as shown:
            if not options:
                site.until("UPDATE2", "UPDATE1")
                hold.unlink()
    assert f"stack {site.name} is {status}" in shown
    assert f"{site.name} is {status}" in lines[-1]
    assert site.state() == status
    assert site.runs() == trace


def test_a_renamed_nested_stack_is_created_after_the_removal_of_the_old_one(site: Site) -> None:
    def resources(name: str, file: str = "nested.yaml") -> dict[str, Any]:
        return {name: define(file, server=site.server)}

    for number, file in enumerate(("nested.yaml", "other.yaml"), 1):
        body = json.loads(Path(site.template(d=site.resource(number, server={"get_param": "server"}))).read_text())
        site.folder.joinpath(file).write_text(json.dumps({**body, "parameters": {"server": {"type": "string"}}}))
    site.stack("create", "--wait", **resources("a"))
    site.runs()
    for before, after, file, change in (
        ("a", "b", "nested.yaml", ["DELETE1", "DELETE1.", "CREATE1", "CREATE1."]),
        ("b", "b", "other.yaml", ["DELETE1", "DELETE1.", "CREATE2", "CREATE2."]),
    ):
        changed = resources(after, file)
        assert site.planned(**changed) == [
            f"DELETE of {before}/d on {site.server}",
            f"CREATE of {after}/d on {site.server}",
        ]
        site.stack("update", "--wait", **changed)
        assert site.runs() == change


def test_another_name_of_a_server_is_another_machine(site: Site, tmp_path: Path) -> None:
    with enrolled_agent(tmp_path / "second", site.stoker, f"{site.server}-b") as second:

        def on(name: str, value: int) -> dict[str, Any]:
            machine = define("OS::Heat::DeployedServer", name=name)
            return {"machine": machine, "d": site.resource(value, server={"get_resource": "machine"})}

        site.stack("create", "--wait", **on(site.server, 1))
        site.stack("update", "--wait", **on(f"{site.server}-b", 2))
        assert second.lines() == ["CREATE2", "CREATE2."]
        assert site.runs() == ["CREATE1", "CREATE1.", "DELETE1", "DELETE1."]


def test_a_delete_runs_also_without_a_signal(site: Site) -> None:
    value = define("OS::Heat::Value", value=1)
    site.stack("create", "--wait", d=site.resource(1, signal_transport="NO_SIGNAL"), value=value)
    site.until("CREATE1", "CREATE1.")
    site.stack("update", "--wait", value=value)
    assert site.runs() == ["CREATE1", "CREATE1.", "DELETE1", "DELETE1."]
