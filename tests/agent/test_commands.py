"""``status``, ``logs`` and ``run-once``, as processes beside a running agent."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess

import pytest

from agent.conftest import HOLD
from stoker_agent.commands import run_once, status
from support.agents import AGENT_PYTHON

pytestmark = pytest.mark.slow

SCRIPT = "#!/bin/sh\necho out\necho err >&2\nexit {}"


def call(agent, *words):
    return agent.call(*words, "--root", str(agent.root))


def read_status(agent):
    done = call(agent, "status", "--json")
    values = json.loads(done.stdout)
    assert values["exit_code"] == done.returncode
    return values


def await_status(server, agent, code):
    server.until(lambda: read_status(agent)["exit_code"] == code)


@contextlib.contextmanager
def following(agent, *words):
    """The command ``logs -f`` with its output."""
    command = [AGENT_PYTHON, "-m", "stoker_agent", "logs", "-f", *words, "--root", str(agent.root)]
    with subprocess.Popen(command, env=agent.variables, stdout=subprocess.PIPE, text=True) as process:
        yield process


def test_status_of_an_agent_that_runs_and_of_one_that_does_not(agent, server):
    values = read_status(agent)
    assert (values["state"], values["exit_code"], values["pid"]) == ("not running", status.NOT_RUNNING, None)
    assert (values["server_id"], values["sources"]) == ("s1", ["stoker"])
    agent.begin(server.entry("c1", f"#!/bin/sh\n{HOLD}"))
    server.until(agent.run_folder("c1").joinpath("entry.json").exists)
    values = read_status(agent)
    assert (values["state"], values["exit_code"], values["pid"]) == ("running", status.WELL, agent.process.pid)
    assert (values["source"], values["running"], values["key_refused"]) == ("stoker", ["c1"], False)
    assert values["last_contact"] > 0
    text = call(agent, "status").stdout
    assert f"log          {agent.root}/logs/agent.log" in text
    assert "sources      stoker (in use)" in text
    agent.kill()
    assert read_status(agent)["exit_code"] == status.NOT_RUNNING


def test_status_shows_an_outage_and_its_end_and_is_not_written_by_an_idle_agent(agent, server):
    server.head["poll_wait"] = 1  # the end of an outage shows when the next poll ends
    agent.start("--polling-interval", "0.2")
    path = agent.root / "state" / "status.json"
    await_status(server, agent, status.WELL)
    before, polls = path.stat().st_ino, len(server.polls)
    server.until(lambda: len(server.polls) >= polls + 3)
    assert path.stat().st_ino == before  # each write replaces the file
    server.vanish()
    await_status(server, agent, status.NO_CONTACT)
    assert "Connection" in read_status(agent)["failures"]["stoker"]["message"]
    server.come_back()
    await_status(server, agent, status.WELL)
    assert read_status(agent)["failures"] == {}


def test_status_shows_a_refused_key(agent, server):
    agent.configure("s1.wrong")
    agent.start()
    server.until(lambda: read_status(agent)["key_refused"])
    done = call(agent, "status")
    assert done.returncode == status.REFUSED
    assert "the server refuses this agent's key" in done.stdout


def test_logs_of_the_agent_and_of_a_run(agent, server):
    assert call(agent, "logs").returncode == 1
    agent.run(server.entry("c1", SCRIPT.format(0)))
    assert "agent.started" in call(agent, "logs", "--lines", "1000").stdout.splitlines()[0]
    assert len(call(agent, "logs", "--lines", "1").stdout.splitlines()) == 1
    assert call(agent, "logs", "--run", "c").stdout == "out\nerr\n"
    wrong = call(agent, "logs", "--run", "x")
    assert (wrong.returncode, wrong.stderr) == (1, "stoker-agent: no run x is kept here\n")


def test_logs_follow_the_agent_and_a_run_until_its_end(agent, server):
    agent.begin()
    server.until(lambda: server.polls)
    with following(agent, "--lines", "1") as process:
        assert "agent.started" in process.stdout.readline()
        server.give(server.entry("c1", f"#!/bin/sh\necho first\n{HOLD}\necho last"))
        assert "run.started: run c1" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    server.until(agent.run_folder("c1").joinpath("stdout").exists)
    with following(agent, "--run", "c1") as process:
        assert process.stdout.readline() == "first\n"
        agent.release()
        assert process.stdout.read() == "last\n"
    assert process.returncode == 0


def test_logs_follow_the_log_over_a_rotation(agent):
    log = agent.root / "logs" / "agent.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("first\n")
    with following(agent) as process:
        assert process.stdout.readline() == "first\n"
        with log.open("a") as file:
            file.write("second\n")
        log.rename(log.with_name("agent.log.1"))
        log.write_text("third\n")
        assert [process.stdout.readline() for _ in range(2)] == ["second\n", "third\n"]
        process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(("code", "exit_code"), [(0, 0), (7, run_once.RUNS_FAILED)])
def test_a_single_pass_runs_what_follows_and_exits_with_the_outcome(agent, server, code, exit_code):
    server.released["signal"].clear()
    agent.begin(server.entry("c1", SCRIPT.format(0)), command="run-once")
    server.until(lambda: server.results("c1"))
    server.give(server.entry("c2", SCRIPT.format(code)))
    server.released["signal"].set()
    assert agent.process.wait(60) == exit_code
    assert server.result("c2")["deploy_status_code"] == code
    assert f"2 runs, {int(code > 0)} failed" in agent.log
    assert [facts["hostname"] for facts in server.facts] == [socket.gethostname()]


def test_a_single_pass_fails_if_results_remain_or_no_source_answers(agent, server):
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
    server.vanish()
    agent.start(command="run-once")
    assert agent.process.wait(60) == 1
    assert "cannot poll" in agent.log
