"""Several runs at a time, where the document says so."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

#: Adds a line when it begins and when it ends.
STEP = "echo + >>$WORK/steps; {}; echo - >>$WORK/steps"
WAIT = "until test -e $WORK/go; do sleep 0.02; done"


def most_at_once(lines):
    found = now = 0
    for each in lines:
        now += 1 if each == "+" else -1
        found = max(found, now)
    return found


def test_as_many_runs_as_the_document_permits_run_at_a_time_and_each_once(server, agent):
    server.head["concurrency"] = 3
    server.give(*(server.entry(f"c{n}", STEP.format(WAIT)) for n in range(8)))
    agent.start()
    server.until(lambda: len(agent.lines("steps")) == 3)
    agent.work.joinpath("go").touch()
    for n in range(8):
        assert server.result(f"c{n}")["deploy_status_code"] == 0
    assert len(agent.lines("steps")) == 16
    assert most_at_once(agent.lines("steps")) == 3
    assert len(server.signals) == 8


def test_results_come_in_any_order(server, agent):
    server.head["concurrency"] = 2
    server.give(server.entry("slow", WAIT), server.entry("quick", "true"), server.entry("last", "true"))
    agent.start()
    server.result("quick")
    server.result("last")
    assert server.results("slow") == []
    agent.work.joinpath("go").touch()
    server.result("slow")


@pytest.mark.parametrize("said", [None, 0, -1, "3", True, 2.5, [3]])
def test_an_invalid_limit_of_parallel_runs_counts_as_one(server, agent, said):
    server.head["concurrency"] = said
    server.give(*(server.entry(f"c{n}", STEP.format("sleep 0.1")) for n in range(3)))
    agent.start()
    server.result("c2")
    assert most_at_once(agent.lines("steps")) == 1


def test_all_running_runs_are_interrupted_when_the_agent_is_killed(server, agent):
    server.head["concurrency"] = 4
    server.give(*(server.entry(f"c{n}", "echo ran >>$WORK/runs; sleep 1000") for n in range(4)))
    agent.start()
    server.until(lambda: len(agent.lines("runs")) == 4)
    agent.kill()
    agent.start()
    for n in range(4):
        assert server.result(f"c{n}")["deploy_status_code"] == 137
    assert len(agent.lines("runs")) == 4
    assert agent.living() == [agent.process.pid]


def test_cancelling_one_of_several_runs_leaves_the_others_running(server, agent):
    server.head["concurrency"] = 3
    entries = [server.entry(f"c{n}", STEP.format(WAIT)) for n in range(3)]
    server.give(*entries)
    agent.start()
    server.until(lambda: len(agent.lines("steps")) == 3)
    server.give(entries[0], {**entries[1], "cancel": True}, entries[2])
    assert server.result("c1")["deploy_status_code"] == 143
    agent.work.joinpath("go").touch()
    assert [server.result(id)["deploy_status_code"] for id in ("c0", "c2")] == [0, 0]


def test_a_single_pass_executes_the_whole_document(server, agent):
    server.head["concurrency"] = 2
    server.give(*(server.entry(f"c{n}", STEP.format("sleep 0.1")) for n in range(5)))
    agent.start(command="run-once")
    assert agent.process.wait(60) == 0
    assert sorted(id for id, _ in server.signals) == [f"c{n}" for n in range(5)]
    assert most_at_once(agent.lines("steps")) == 2
