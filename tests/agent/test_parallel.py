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
    agent.begin(*(server.entry(f"c{n}", STEP.format(WAIT)) for n in range(8)))
    server.until(lambda: len(agent.lines("steps")) == 3)
    server.give(*server.deployments, {**server.entry("last", "true"), "cancel": True})
    server.result("last")  # the agent has decided about all runs before it
    assert not agent.run_folder("c3").exists()
    agent.work.joinpath("go").touch()
    for n in range(8):
        assert server.result(f"c{n}")["deploy_status_code"] == 0
    assert len(agent.lines("steps")) == 16
    assert most_at_once(agent.lines("steps")) == 3
    assert len(server.signals) == 9


def test_cancelling_one_of_several_runs_leaves_the_others_running(server, agent):
    server.head["concurrency"] = 3
    entries = [server.entry(f"c{n}", STEP.format(WAIT)) for n in range(3)]
    agent.begin(*entries)
    server.until(lambda: len(agent.lines("steps")) == 3)
    server.give(entries[0], {**entries[1], "cancel": True}, entries[2])
    assert server.result("c1")["deploy_status_code"] == 143
    agent.work.joinpath("go").touch()
    assert [server.result(id)["deploy_status_code"] for id in ("c0", "c2")] == [0, 0]
