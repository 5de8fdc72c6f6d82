"""Installations of the agent on a machine: repeatable, complete or not there at all, and removed without a rest."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support.agent_protocol import deploy
from support.templates import define, template

pytestmark = pytest.mark.slow


def enroll(stoker, name):
    return stoker.heat("POST", "/servers", {"name": name}).body["enrollment"]


def install(stoker, machine, name):
    machine.install(enroll(stoker, name)["command"])


def server_status(stoker, name):
    return stoker.heat("GET", f"/servers/{name}").body["server"]["status"]


def test_an_installation_is_repeatable_and_its_output_names_its_files(stoker, machine):
    line = enroll(stoker, "web")
    said = dict(text.split(None, 1) for text in machine.install(line["command"]).splitlines()[1:])
    for noun, path in (("program", "stoker-agent.pyz"), ("key", "etc/agent.json"), ("log", "logs/agent.log")):
        assert said[noun].split()[0] == str(machine.root / path)
        assert machine.root.joinpath(path).exists()
    assert "at boot, start it with: " in said["service"]
    assert said["remove"] == f"{machine.root}/stoker-agent.pyz leave --root {machine.root}"
    stoker.until(lambda: machine.run_agent("status").returncode == 0)
    before = machine.config
    # the same line again, and a line without a token, which an enrolled machine does not need for a new program
    for again in (line["command"], line["command"].replace(line["token"], "", 1)):
        [agent] = machine.agents
        assert "(replaced)" in machine.install(again)
        assert machine.config == before
        assert len(machine.agents) == 1
        assert machine.agents != [agent]


def test_a_failed_installation_leaves_nothing_and_changes_no_earlier_one(stoker, machine):
    line = enroll(stoker, "fails")
    wrong = line["command"].replace(line["token"], "wrong", 1)
    failed = machine.paste(wrong)
    assert failed.returncode == 1
    assert "not valid, or has been used already" in failed.stderr
    assert not machine.root.exists()
    install(stoker, machine, "stays")
    program = machine.root / "stoker-agent.pyz"
    before = machine.config, machine.agents, program.read_bytes()
    assert machine.paste(wrong).returncode == 1
    assert (machine.config, machine.agents, program.read_bytes()) == before
    assert [path for path in machine.root.rglob("*") if path.name.endswith(".new")] == []
    stoker.until(lambda: server_status(stoker, "stays") == "ONLINE")


def test_leave_refuses_during_a_run_unless_forced_and_removes_everything(stoker, machine, tmp_path):
    for name in ("sleep", "touch"):
        machine.add_tool(name)
    install(stoker, machine, "busy")
    began, go = tmp_path / "began", tmp_path / "go"
    script = f"#!/bin/sh\ntouch {began}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n"
    deploy(stoker, stoker.heat("GET", "/servers/busy").body["server"]["id"], script)
    stoker.until(began.exists)
    refused = machine.run_agent("leave")
    assert refused.returncode == 1
    assert "1 run is in progress" in refused.stderr
    assert len(machine.agents) == 1
    machine.root.joinpath("stoker-agent.pyz.old").write_text("the program before an upgrade")
    forced = machine.run_agent("leave", "--force")
    go.touch()
    assert forced.returncode == 0, forced.stderr
    assert "server busy is removed from Stoker" in forced.stdout
    assert not machine.root.exists()
    assert machine.agents == []
    assert stoker.heat("GET", "/servers/busy").status == 404


def test_leave_keeps_data_on_request_and_names_the_rest_at_an_unreachable_stoker(stoker, machine):
    install(stoker, machine, "lonely")
    config = machine.config
    machine.root.joinpath("hooks", "own").write_text("#!/bin/sh\n")
    machine.root.joinpath("etc", "agent.json").write_text(json.dumps({**config, "url": "http://127.0.0.1:1"}))
    left = machine.run_agent("leave", "--keep-data")
    assert left.returncode == 0
    assert f"`stoker server delete {config['server_id']}`" in left.stderr
    assert sorted(path.name for path in machine.root.iterdir()) == ["hooks", "logs", "state"]
    assert machine.root.joinpath("hooks", "own").exists()


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
    stoker.create_stack("owner", template({"server": define("OS::Heat::DeployedServer", name="owned")}))
    stoker.until(lambda: server_status(stoker, "owned") == "ONLINE")
    left = machine.run_agent("leave")
    assert "Stoker keeps its record" in left.stdout
    assert server_status(stoker, "owned") == "LEFT"
    install(stoker, machine, "owned")
    stoker.until(lambda: server_status(stoker, "owned") == "ONLINE")
