"""``status``, ``logs`` and ``run-once``, as processes beside a running agent."""

from __future__ import annotations

import json
import signal
import socket
import subprocess

import pytest

from stoker_agent.commands import run_once, status
from support.agents import AGENT_PYTHON

pytestmark = pytest.mark.slow

SCRIPT = "#!/bin/sh\necho out\necho err >&2\nexit {}"


def read_status(agent):
    done = agent.call("status", "--json", "--root", str(agent.root))
    values = json.loads(done.stdout)
    assert values["exit_code"] == done.returncode
    return values


def test_status_of_an_agent_that_does_not_run(agent):
    values = read_status(agent)
    assert (values["state"], values["exit_code"], values["pid"]) == ("not running", status.NOT_RUNNING, None)
    assert (values["server_id"], values["sources"]) == ("s1", ["stoker"])


def test_status_of_a_running_agent_names_its_runs_and_its_last_contact(agent, server):
    server.give(server.entry("c1", '#!/bin/sh\nwhile [ ! -e "$WORK/go" ]; do sleep 0.05; done'))
    agent.start()
    server.until(lambda: agent.run_folder("c1").joinpath("entry.json").exists())
    values = read_status(agent)
    assert (values["state"], values["exit_code"], values["pid"]) == ("running", status.WELL, agent.process.pid)
    assert (values["source"], values["running"], values["key_refused"]) == ("stoker", ["c1"], False)
    assert values["last_contact"] > 0
    text = agent.call("status", "--root", str(agent.root)).stdout
    assert f"log          {agent.root}/logs/agent.log" in text
    assert "sources      stoker (in use)" in text
    agent.work.joinpath("go").touch()
    assert server.result("c1")["deploy_status_code"] == 0
    agent.kill()
    assert read_status(agent)["exit_code"] == status.NOT_RUNNING


def test_status_shows_an_outage_and_its_end(agent, server):
    server.head["poll_wait"] = 1  # the end of an outage shows when the next poll ends
    server.give()
    agent.start("--polling-interval", "0.2")
    server.until(lambda: read_status(agent)["exit_code"] == status.WELL)
    server.vanish()
    server.until(lambda: read_status(agent)["exit_code"] == status.NO_CONTACT)
    assert "Connection" in read_status(agent)["failures"]["stoker"]["message"]
    server.come_back()
    server.until(lambda: read_status(agent)["exit_code"] == status.WELL)
    assert read_status(agent)["failures"] == {}


def test_status_shows_a_refused_key(agent, server):
    agent.configure("s1.wrong")
    agent.start()
    server.until(lambda: read_status(agent)["key_refused"])
    done = agent.call("status", "--root", str(agent.root))
    assert done.returncode == status.REFUSED
    assert "the server refuses this agent's key" in done.stdout


def test_an_idle_agent_does_not_write_its_status(agent, server):
    server.head["poll_wait"] = 1
    server.give()
    agent.start()
    path = agent.root / "state" / "status.json"
    server.until(lambda: read_status(agent)["exit_code"] == status.WELL)
    before, polls = path.stat().st_ino, len(server.polls)
    server.until(lambda: len(server.polls) >= polls + 3)
    assert path.stat().st_ino == before  # each write replaces the file


def test_logs_of_the_agent_and_of_a_run(agent, server):
    server.give(server.entry("c1", SCRIPT.format(0)))
    assert agent.call("logs", "--root", str(agent.root)).returncode == 1
    agent.start()
    server.result("c1")
    log = agent.call("logs", "--lines", "1000", "--root", str(agent.root)).stdout.splitlines()
    assert "agent.started" in log[0]
    assert len(agent.call("logs", "--lines", "1", "--root", str(agent.root)).stdout.splitlines()) == 1
    assert agent.call("logs", "--run", "c", "--root", str(agent.root)).stdout == "out\nerr\n"
    wrong = agent.call("logs", "--run", "x", "--root", str(agent.root))
    assert (wrong.returncode, wrong.stderr) == (1, "stoker-agent: no run x is kept here\n")


def test_logs_follow_a_run_until_its_end(agent, server):
    server.give(server.entry("c1", '#!/bin/sh\necho first\nwhile [ ! -e "$WORK/go" ]; do sleep 0.05; done\necho last'))
    agent.start()
    server.until(lambda: agent.run_folder("c1").joinpath("stdout").exists())
    command = [AGENT_PYTHON, "-m", "stoker_agent", "logs", "-f", "--run", "c1", "--root", str(agent.root)]
    with subprocess.Popen(command, env=agent.variables, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout.readline() == "first\n"
        agent.work.joinpath("go").touch()
        assert following.stdout.read() == "last\n"
    assert following.returncode == 0


def test_logs_follow_the_agent(agent, server):
    server.give()
    agent.start()
    server.until(lambda: server.polls)
    command = [AGENT_PYTHON, "-m", "stoker_agent", "logs", "-f", "--lines", "1", "--root", str(agent.root)]
    with subprocess.Popen(command, env=agent.variables, stdout=subprocess.PIPE, text=True) as following:
        assert "agent.started" in following.stdout.readline()
        server.give(server.entry("c1", SCRIPT.format(0)))
        assert "run.started: run c1" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
    assert following.returncode == 130


@pytest.mark.parametrize(("code", "exit_code"), [(0, 0), (7, run_once.RUNS_FAILED)])
def test_a_single_pass_runs_what_follows_and_exits_with_the_outcome(agent, server, code, exit_code):
    server.give(server.entry("c1", SCRIPT.format(0)))

    server.released["signal"].clear()
    agent.start(command="run-once")
    server.until(lambda: server.results("c1"))
    server.give(server.entry("c2", SCRIPT.format(code)))
    server.released["signal"].set()
    assert agent.process.wait(60) == exit_code
    assert server.result("c2")["deploy_status_code"] == code
    assert f"2 runs, {int(code > 0)} failed" in agent.log
    assert [facts["hostname"] for facts in server.facts] == [socket.gethostname()]


def test_a_single_pass_without_an_answer_fails(agent, server):
    server.vanish()
    agent.start(command="run-once")
    assert agent.process.wait(60) == 1
    assert "cannot poll" in agent.log


def test_a_single_pass_says_that_results_are_left(agent, server):
    server.answers["signal"] = [503] * 1000
    server.give(server.entry("c1", SCRIPT.format(0)))
    agent.start("--report-seconds", "0.5", command="run-once")
    assert agent.process.wait(60) == 1
    assert "1 results are not reported yet" in agent.log
    server.answers.clear()
    server.give()
    agent.start(command="run-once")
    assert agent.process.wait(60) == 0
    assert server.results("c1")
