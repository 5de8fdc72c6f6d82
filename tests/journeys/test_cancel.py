"""A run is cancelled, from the API to the process: real agents, a real server, and either of them killed meanwhile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.agent_protocol import deploy, shown
from support.agents import own_agent

#: Ends only when it must, as does its child.
DEAF = (
    "#!/bin/bash\ntrap '' TERM\n(while :; do sleep 0.1; done) &\necho $! >>$WORK/pids; echo $$ >>$WORK/pids\n"
    "while :; do sleep 0.1; done\n"
)
HEARING = "#!/bin/sh\nsleep 1000 & echo $! >>$WORK/pids; echo $$ >>$WORK/pids; wait\n"
CLEANUP = {"on_cancel": "#!/bin/sh\necho cleaned; echo done >>$WORK/cleaned\n"}


@pytest.fixture
def agent(stoker, tmp_path):
    with own_agent(tmp_path / "agent") as made:
        made.enroll(stoker, "machine")
        yield made


def cancel(stoker, made) -> dict:
    answer = stoker.heat("POST", f"/software_deployments/{made['id']}/cancel")
    assert answer.status == 202, answer.raw
    return answer.body["software_deployment"]


def run_of(stoker, made) -> dict:
    return stoker.heat("GET", f"/software_deployments/{made['id']}/runs").body["runs"][0]


def begun(stoker, agent, made) -> list[int]:
    stoker.until(lambda: len(agent.lines("pids")) == 2 and run_of(stoker, made)["delivered_time"] is not None)
    return [int(each) for each in agent.lines("pids")]


def gone(pids: list[int]) -> bool:
    def over(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    return all(over(pid) for pid in pids)


def ended(stoker, made) -> dict:
    stoker.until(lambda: shown(stoker, made)["status"] == "FAILED", 60)
    return shown(stoker, made)


def test_a_cancelled_run_is_ended_cleaned_up_and_reported(stoker, agent):
    agent.start()
    made = deploy(stoker, agent.spoken.id, HEARING, options=CLEANUP)
    pids = begun(stoker, agent, made)
    found = cancel(stoker, made)
    assert (found["status"], found["status_reason"]) == ("IN_PROGRESS", "Cancelling")
    assert re.match(r"Cancelled: ended by TERM after [\d.]+ s", ended(stoker, made)["status_reason"])
    assert gone(pids)
    assert agent.lines("cleaned") == ["done"]
    run = run_of(stoker, made)
    assert (run["state"], run["status"], run["status_code"]) == ("DONE", "FAILED", "143")
    logs = stoker.heat("GET", f"/software_deployments/{made['id']}/logs").body["logs"]
    assert "".join(each["data"] for each in logs) == "cleaned\n"


def test_a_server_killed_during_a_cancellation_receives_the_result(stoker, agent):
    agent.start()
    made = deploy(stoker, agent.spoken.id, DEAF, options={**CLEANUP, "cancel_grace": 1})
    pids = begun(stoker, agent, made)
    cancel(stoker, made)
    stoker.kill9()
    stoker.restart()
    assert ended(stoker, made)["status_reason"].startswith("Cancelled: had to be killed after 1 s")
    assert gone(pids)
    assert agent.lines("cleaned") == ["done"]


def test_an_offline_agent_never_begins_a_cancelled_run(stoker, agent):
    by_hand = agent.spoken
    made = deploy(stoker, by_hand.id, HEARING, options=CLEANUP)
    assert len(by_hand.entries()) == 1  # it has it, and dies before it can acknowledge it
    stoker.until(lambda: run_of(stoker, made)["channel"] == "STOKER_PUSH")
    assert (run_of(stoker, made)["state"], run_of(stoker, made)["delivered_time"]) == ("QUEUED", None)
    assert cancel(stoker, made)["status"] == "IN_PROGRESS"
    agent.start()
    assert ended(stoker, made)["status_reason"].startswith("Cancelled before it began")
    assert agent.lines("pids") == agent.lines("cleaned") == []
    assert by_hand.entries() == []
