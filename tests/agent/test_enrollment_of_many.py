"""Real agents with one token for many machines: approval, replaced machines, images and containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from uuid import uuid4

import pytest

from support.install_line import Machine
from support.server import served_on
from support.templates import define

pytestmark = pytest.mark.slow
#: For tests of the agent; tests/servers/test_redemption.py tests what Stoker stores for them on each kind of database.
ON_SQLITE = pytest.mark.parametrize("stoker", ["sqlite"], indirect=True)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory):
    with served_on(request, tmp_path_factory.mktemp("many")) as running:
        yield running


@pytest.fixture
def machines(tmp_path):
    made = []

    def machine(name: str) -> Machine:
        made.append(Machine(tmp_path / name))
        for tool in ("cat", "sleep"):
            made[-1].add_tool(tool)
        return made[-1]

    yield machine
    for each in made:
        each.end()


def server_of(stoker, id):
    return stoker.heat("GET", f"/servers/{id}").body["server"]


def line(stoker, *words):
    done = stoker.run("server", "enroll", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def paste(machine, command):
    pasted = machine.paste(command)
    assert pasted.returncode == 0, pasted.stderr
    return machine.config


def deploy(stoker, server, script, **more):
    config = stoker.heat("POST", "/software_configs", {"group": "script", "config": script, **more}).body
    body = {"config_id": config["software_config"]["id"], "server_id": server, "signal_transport": "STOKER_SIGNAL"}
    return stoker.heat("POST", "/software_deployments", body).body["software_deployment"]["id"]


def deployment(stoker, id):
    return stoker.heat("GET", f"/software_deployments/{id}").body["software_deployment"]


def until_complete(stoker, id):
    stoker.until(lambda: deployment(stoker, id)["status"] == "COMPLETE")


@ON_SQLITE
def test_agents_start_when_their_servers_are_approved(stoker, machines):
    command = line(stoker, "--many", "--limit", "9", "--approve", "--label", "tier=late")
    admitted, other = machines("admitted"), machines("other")
    pasted = admitted.paste(command)
    assert pasted.returncode == 0, pasted.stderr
    assert "approval  awaited: stoker server approve " in pasted.stdout
    server, rejected = admitted.config["server_id"], paste(other, command)["server_id"]
    stoker.until(lambda: "approval.pending" in admitted.root.joinpath("logs", "agent.log").read_text())
    assert server_of(stoker, server)["status"] == "PENDING_APPROVAL"
    assert stoker.heat("GET", "/servers?labels=tier=late").body["servers"] == []
    run = deploy(stoker, server, "#!/bin/sh\necho ran\n")
    assert stoker.run("server", "reject", rejected, "--yes").returncode == 0
    assert stoker.heat("GET", f"/servers/{rejected}").status == 404
    assert stoker.run("server", "approve", "--all").returncode == 0
    until_complete(stoker, run)
    entries = stoker.heat("GET", "/audit").body["audit"]
    assert ("approve", "ALLOWED", server) in [
        (entry["action"], entry["outcome"], entry.get("server_id")) for entry in entries
    ]
    stoker.until(lambda: "was not approved" in other.root.joinpath("logs", "agent.log").read_text())


def test_another_machine_takes_the_place_of_a_server(stoker, machines, tmp_path):
    old, new = machines("old"), machines("new")
    server = paste(old, line(stoker, "place", "--label", "role=db"))["server_id"]
    ran, go = tmp_path / "ran", tmp_path / "go"
    complete = deploy(stoker, server, f"#!/bin/sh\necho once >> {ran}\n")
    until_complete(stoker, complete)
    unfinished = deploy(stoker, server, f"#!/bin/sh\necho began >> {ran}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n")
    stoker.until(lambda: ran.read_text() == "once\nbegan\n")
    queued = deploy(stoker, server, f"#!/bin/sh\necho queued >> {ran}\n")
    old.end()
    assert paste(new, line(stoker, "place", "--again"))["server_id"] == server
    stoker.until(lambda: deployment(stoker, unfinished)["status"] == "FAILED")
    assert "Interrupted: server place was enrolled again" in deployment(stoker, unfinished)["status_reason"]
    stoker.until(lambda: deployment(stoker, queued)["status"] in ("COMPLETE", "FAILED"))
    go.touch()
    assert server_of(stoker, "place")["labels"] == {"role": "db"}
    assert [ran.read_text().count(word) for word in ("once", "began")] == [1, 1]


def test_a_new_machine_runs_everything_again_on_request(stoker, machines, tmp_path):
    name = f"rerun-{uuid4().hex[:8]}"  # of its own, because a failed test runs once more at the same Stoker
    server = paste(machines("old"), line(stoker, name))["server_id"]
    ran = tmp_path / "ran"
    config = define("OS::Heat::SoftwareConfig", group="script", config=f"#!/bin/sh\necho stack >> {ran}\n")
    deployed = define("OS::Heat::SoftwareDeployment", config={"get_resource": "config"}, server=server)
    content = {"heat_template_version": "2018-08-31", "resources": {"config": config, "deployment": deployed}}
    assert stoker.heat("POST", "/stacks", {"stack_name": name, "template": content}).status == 201
    stoker.until(lambda: stoker.heat("GET", f"/stacks/{name}").status == 302)
    stoker.until(lambda: ran.exists() and ran.read_text() == "stack\n")
    alone = deploy(stoker, server, f"#!/bin/sh\necho alone >> {ran}\n")
    until_complete(stoker, alone)
    paste(machines("new"), line(stoker, name, "--again", "--rerun"))
    stoker.until(lambda: sorted(ran.read_text().split()) == ["alone", "alone", "stack", "stack"])
    until_complete(stoker, alone)

    def statuses():
        return [stack["stack_status"] for stack in stoker.heat("GET", f"/stacks?name={name}").body["stacks"]]

    stoker.until(lambda: statuses() == ["UPDATE_COMPLETE"])


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
