"""Real agents with one token for many machines: approval, replaced machines, images and containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.agent_protocol import deploy, shown
from support.install_line import Machine
from support.server import served_on
from support.templates import config, on, template

pytestmark = pytest.mark.slow
#: For tests of the agent; tests/servers/test_redemption.py tests what Stoker stores for them on each kind of database.
ON_SQLITE = pytest.mark.parametrize("stoker", ["sqlite"], indirect=True)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory):
    with served_on(request, tmp_path_factory.mktemp("many")) as running:
        yield running


@pytest.fixture
def machine(machines):
    """Makes a machine with what the scripts of runs use."""

    def make(name: str) -> Machine:
        made = machines(name)
        for tool in ("cat", "sleep"):
            made.add_tool(tool)
        return made

    return make


def server_of(stoker, id):
    return stoker.heat("GET", f"/servers/{id}").body["server"]


def install(machine, stoker, *words):
    """Install the agent by the line of ``stoker server enroll``. Return the id of its server."""
    machine.install(stoker.run("server", "enroll", *words).stdout.strip())
    return machine.config["server_id"]


def until_complete(stoker, deployment):
    stoker.until(lambda: shown(stoker, deployment)["status"] == "COMPLETE")


@ON_SQLITE
def test_agents_start_when_their_servers_are_approved(stoker, machine):
    words = ("server", "enroll", "--many", "--limit", "9", "--approve", "--label", "tier=late")
    command = stoker.run(*words).stdout.strip()
    admitted, other = machine("admitted"), machine("other")
    assert "approval  awaited: stoker server approve " in admitted.install(command)
    other.install(command)
    server, rejected = admitted.config["server_id"], other.config["server_id"]
    stoker.until(lambda: "approval.pending" in admitted.root.joinpath("logs", "agent.log").read_text())
    assert server_of(stoker, server)["status"] == "PENDING_APPROVAL"
    assert stoker.heat("GET", "/servers?labels=tier=late").body["servers"] == []
    run = deploy(stoker, server, "#!/bin/sh\necho ran\n")
    stoker.run("server", "reject", rejected, "--yes")
    assert stoker.heat("GET", f"/servers/{rejected}").status == 404
    stoker.run("server", "approve", "--all")
    until_complete(stoker, run)
    entries = stoker.heat("GET", "/audit").body["audit"]
    assert ("approve", "ALLOWED", server) in [
        (entry["action"], entry["outcome"], entry.get("server_id")) for entry in entries
    ]
    stoker.until(lambda: "was not approved" in other.root.joinpath("logs", "agent.log").read_text())


def test_another_machine_takes_the_place_of_a_server(stoker, machine, tmp_path):
    old = machine("old")
    server = install(old, stoker, "place", "--label", "role=db")
    ran, go = tmp_path / "ran", tmp_path / "go"
    until_complete(stoker, deploy(stoker, server, f"#!/bin/sh\necho once >> {ran}\n"))
    unfinished = deploy(stoker, server, f"#!/bin/sh\necho began >> {ran}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n")
    stoker.until(lambda: ran.read_text() == "once\nbegan\n")
    queued = deploy(stoker, server, f"#!/bin/sh\necho queued >> {ran}\n")
    old.end()
    assert install(machine("new"), stoker, "place", "--again") == server
    stoker.until(lambda: shown(stoker, unfinished)["status"] == "FAILED")
    assert "Interrupted: server place was enrolled again" in shown(stoker, unfinished)["status_reason"]
    stoker.until(lambda: shown(stoker, queued)["status"] in ("COMPLETE", "FAILED"))
    go.touch()
    assert server_of(stoker, "place")["labels"] == {"role": "db"}
    assert [ran.read_text().count(word) for word in ("once", "began")] == [1, 1]


def test_a_new_machine_runs_everything_again_on_request(stoker, machine, tmp_path):
    server = install(machine("old"), stoker, "again")
    ran = tmp_path / "ran"
    content = template({"config": config(f"#!/bin/sh\necho stack >> {ran}\n"), "deployment": on(server)})
    stack = stoker.create_stack("again", content)
    stoker.until(lambda: ran.exists() and ran.read_text() == "stack\n")
    alone = deploy(stoker, server, f"#!/bin/sh\necho alone >> {ran}\n")
    until_complete(stoker, alone)
    install(machine("new"), stoker, "again", "--again", "--rerun")
    stoker.until(lambda: sorted(ran.read_text().split()) == ["alone", "alone", "stack", "stack"])
    until_complete(stoker, alone)
    stoker.await_stack(stack, "UPDATE_COMPLETE")


@ON_SQLITE
def test_a_container_enrolls_when_its_agent_starts(stoker, tmp_path):
    token = json.loads(stoker.run("server", "enroll", "--many", "--limit", "1", "-o", "json").stdout)
    environment = {**os.environ, "STOKER_URL": stoker.url, "STOKER_TOKEN": token["enrollment"]["token"]}
    command = [sys.executable, "-m", "stoker_agent", "run-once", "--root", str(tmp_path / "root")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "enrollment.done" in done.stderr
    again = {name: value for name, value in environment.items() if name != "STOKER_TOKEN"}
    assert subprocess.run(command, env=again, capture_output=True, timeout=120, check=False).returncode == 0
