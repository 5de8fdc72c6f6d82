"""Commands of an operator whose service or agents fail meanwhile."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from support.agents import enrolled_agent, own_agent

pytestmark = pytest.mark.slow


def test_a_command_runs_on_the_other_servers_after_its_canary(stoker, tmp_path):
    with ExitStack() as running:
        names = ["web1", "web2", "web3"]
        agents = {name: running.enter_context(enrolled_agent(tmp_path / name, stoker, name)) for name in names}
        run = ("run", *names, "--canary", "1", "--")
        failed = stoker.run(*run, "echo $$ >> $WORK/runs; exit 7", check=False)
        assert (failed.returncode, "2 were not run" in failed.stderr) == (7, True)
        assert sorted(len(agent.lines()) for agent in agents.values()) == [0, 0, 1]

        done = stoker.run(*run, "date +%s%N; sleep 0.2; date +%s%N")
        times: dict[str, list[int]] = {name: [] for name in names}
        for line in done.stdout.splitlines():
            name, _, time = line.split()
            times[name].append(int(time))
        (first,) = [name for name, agent in agents.items() if agent.lines()]
        assert all(times[name][0] > times[first][1] for name in names if name != first)
        assert stoker.json("trigger", "list") == stoker.json("config", "list") == []


def test_a_cancellation_survives_a_killed_server(stoker, agent, tmp_path):
    script = tmp_path / "long.sh"
    script.write_text("#!/bin/sh\necho began >> $WORK/runs\nsleep 600\n")
    options = tmp_path / "options.yaml"
    options.write_text("options: {on_cancel: 'echo cleaned >> $WORK/runs'}\n")
    stoker.run("config", "create", "long", "--file", str(script), "--definition", str(options))
    stoker.run("deployment", "create", "--config", "long", "--server", "web1", "--name", "d")
    stoker.until(lambda: agent.lines() == ["began"])
    stoker.run("deployment", "cancel", "d")
    stoker.kill9()
    stoker.restart()
    stoker.until(lambda: stoker.json("deployment", "show", "d")["status"] == "FAILED")
    assert "Cancelled" in stoker.json("deployment", "show", "d")["status_reason"]
    assert agent.lines() == ["began", "cleaned"]


def test_runs_of_schedules_that_waited_for_a_server_are_replaced_or_queued(stoker, tmp_path):
    script = tmp_path / "say.sh"
    script.write_text("#!/bin/sh\necho $policy >> $WORK/runs\n")
    stoker.run("config", "create", "say", "--file", str(script), "--input", "policy")
    with own_agent(tmp_path / "agent") as agent:
        agent.enroll(stoker, "web1")
        for policy in ("replace", "queue"):
            what = ("--config", "say", "--on", "web1", "--input", f"policy={policy}", "--name", policy)
            stoker.run("schedule", "create", *what, "--cron", "0 0 1 1 *", "--overlap-policy", policy)
            for _ in range(2):
                stoker.run("schedule", "run", policy)
        stoker.kill9()
        stoker.restart()
        agent.start()
        stoker.until(lambda: all(trigger["status"] != "IN_PROGRESS" for trigger in stoker.json("trigger", "list")))
        assert sorted(agent.lines()) == ["queue", "queue", "replace"]
        statuses = sorted(trigger["status"] for trigger in stoker.json("trigger", "list"))
        assert statuses == ["CANCELLED", "COMPLETE", "COMPLETE", "COMPLETE"]
