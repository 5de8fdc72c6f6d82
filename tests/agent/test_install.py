"""Installations of the agent on a machine: repeatable, complete or not there at all, and removed without a rest."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support.install_line import Machine
from support.server import served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stoker(tmp_path_factory):
    with served(tmp_path_factory.mktemp("install")) as running:
        yield running


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path / "machine")
    yield made
    made.end()


def enroll(stoker, name):
    return stoker.heat("POST", "/servers", {"name": name}).body["enrollment"]


def install(stoker, machine, name):
    pasted = machine.paste(enroll(stoker, name)["command"])
    assert pasted.returncode == 0, pasted.stderr
    return pasted


def server_status(stoker, name):
    return stoker.heat("GET", f"/servers/{name}").body["server"]["status"]


def test_the_installation_says_what_it_did(stoker, machine):
    said = dict(line.split(None, 1) for line in install(stoker, machine, "says").stdout.splitlines()[1:])
    for noun, path in (("program", "stoker-agent.pyz"), ("key", "etc/agent.json"), ("log", "logs/agent.log")):
        assert said[noun].split()[0] == str(machine.root / path)
        assert machine.root.joinpath(path).exists()
    assert "at boot, start it with: " in said["service"]
    assert said["remove"] == f"{machine.root}/stoker-agent.pyz leave --root {machine.root}"
    stoker.until(lambda: machine.run_agent("status").returncode == 0)


def test_the_same_line_again_keeps_identity_and_replaces_the_agent(stoker, machine):
    line = enroll(stoker, "again")["command"]
    assert machine.paste(line).returncode == 0
    before, [agent] = machine.config, machine.agents
    again = machine.paste(line)
    assert again.returncode == 0, again.stderr
    assert "(replaced)" in again.stdout
    assert machine.config == before
    assert len(machine.agents) == 1
    assert machine.agents != [agent]


def test_an_enrolled_machine_needs_no_token_for_a_new_program(stoker, machine):
    line = enroll(stoker, "upgrade")
    assert machine.paste(line["command"]).returncode == 0
    before = machine.config
    upgraded = machine.paste(line["command"].replace(line["token"], "", 1))
    assert upgraded.returncode == 0, upgraded.stderr
    assert machine.config == before
    assert len(machine.agents) == 1


def test_a_failed_installation_leaves_nothing(stoker, machine):
    line = enroll(stoker, "fails")
    failed = machine.paste(line["command"].replace(line["token"], "wrong", 1))
    assert failed.returncode == 1
    assert "not valid, or has been used already" in failed.stderr
    assert not machine.root.exists()


def test_a_failed_installation_changes_no_earlier_one(stoker, machine):
    install(stoker, machine, "stays")
    line = enroll(stoker, "comes not")
    before, agents, program = machine.config, machine.agents, machine.root.joinpath("stoker-agent.pyz").read_bytes()
    failed = machine.paste(line["command"].replace(line["token"], "wrong", 1))
    assert failed.returncode == 1
    assert machine.config == before
    assert machine.agents == agents
    assert machine.root.joinpath("stoker-agent.pyz").read_bytes() == program
    assert [path for path in machine.root.rglob("*") if path.name.endswith(".new")] == []
    stoker.until(lambda: server_status(stoker, "stays") == "ONLINE")


def test_leave_removes_everything_and_the_server(stoker, machine):
    install(stoker, machine, "leaves")
    machine.root.joinpath("stoker-agent.pyz.old").write_text("the program before an upgrade")
    left = machine.run_agent("leave")
    assert left.returncode == 0, left.stderr
    assert "server leaves is removed from Stoker" in left.stdout
    assert not machine.root.exists()
    assert machine.agents == []
    assert stoker.heat("GET", "/servers/leaves").status == 404


def test_leave_keeps_data_on_request(stoker, machine):
    install(stoker, machine, "keeps")
    machine.root.joinpath("hooks", "own").write_text("#!/bin/sh\n")
    assert machine.run_agent("leave", "--keep-data").returncode == 0
    assert sorted(path.name for path in machine.root.iterdir()) == ["hooks", "logs", "state"]
    assert machine.root.joinpath("hooks", "own").exists()


def test_leave_refuses_during_a_run_unless_forced(stoker, machine, tmp_path):
    for name in ("sleep", "touch"):
        machine.add_tool(name)
    install(stoker, machine, "busy")
    began, go = tmp_path / "began", tmp_path / "go"
    script = f"#!/bin/sh\ntouch {began}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n"
    config = stoker.heat("POST", "/software_configs", {"group": "script", "config": script})
    server = stoker.heat("GET", "/servers/busy").body["server"]["id"]
    body = {"config_id": config.body["software_config"]["id"], "server_id": server, "signal_transport": "STOKER_SIGNAL"}
    assert stoker.heat("POST", "/software_deployments", body).status == 200
    stoker.until(began.exists)
    refused = machine.run_agent("leave")
    assert refused.returncode == 1
    assert "1 run is in progress" in refused.stderr
    assert len(machine.agents) == 1
    forced = machine.run_agent("leave", "--force")
    go.touch()
    assert forced.returncode == 0, forced.stderr
    assert not machine.root.exists()
    assert stoker.heat("GET", "/servers/busy").status == 404


def test_leave_says_what_is_left_at_an_unreachable_stoker(stoker, machine):
    install(stoker, machine, "lonely")
    config = machine.config
    machine.root.joinpath("etc", "agent.json").write_text(json.dumps({**config, "url": "http://127.0.0.1:1"}))
    left = machine.run_agent("leave")
    assert left.returncode == 0
    assert f"`stoker server delete {config['server_id']}`" in left.stderr
    assert not machine.root.exists()


def test_leave_ends_an_agent_that_does_not_answer(stoker, machine):
    install(stoker, machine, "stuck")
    [agent] = machine.agents
    os.kill(agent, signal.SIGSTOP)
    left = machine.run_impatient("leave")
    assert left.returncode == 0, left.stderr
    assert machine.agents == []
    assert not Path(f"/proc/{agent}").exists() or b"stoker" not in Path(f"/proc/{agent}/cmdline").read_bytes()


def test_a_server_that_a_stack_represents_stays_and_can_be_enrolled_again(stoker, machine):
    install(stoker, machine, "owned")
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {"server": {"type": "OS::Heat::DeployedServer", "properties": {"name": "owned"}}},
    }
    created = stoker.heat("POST", "/stacks", {"stack_name": "owner", "template": template})
    assert created.status == 201, created.body
    stoker.until(lambda: stoker.heat("GET", "/servers/owned").body["server"]["status"] == "ONLINE")
    left = machine.run_agent("leave")
    assert "Stoker keeps its record" in left.stdout
    assert server_status(stoker, "owned") == "LEFT"
    install(stoker, machine, "owned")
    stoker.until(lambda: server_status(stoker, "owned") == "ONLINE")
