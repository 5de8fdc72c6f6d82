"""When the runs of a server run: after those that ``depends_on`` names, as many at a time as the document permits."""

from __future__ import annotations

import signal

import pytest

from agent.conftest import HOLD

pytestmark = pytest.mark.slow

#: Adds a line when it begins and when it ends.
STEP = f"echo + >>$WORK/steps; {HOLD}; echo - >>$WORK/steps"
LASTING = "touch $WORK/begun; sleep 1000"


def entry(server, id, script="true", after=(), **inputs):
    script = f"{script}; code=$?; echo {id} >>$WORK/order; exit $code"
    return server.entry(id, script, options={"depends_on": after} if after else {}, **inputs)


def await_begun(server, agent, id):
    server.until(agent.run_folder(id).joinpath("entry.json").exists)


def member(server, id, stack, after=()):
    return entry(server, id, after=after, deploy_stack_id=stack, deploy_resource_name=f"r-{id}")


def test_a_run_starts_after_those_that_it_names_although_its_name_comes_first(server, agent):
    """The names of resources count within one stack."""
    agent.begin(
        entry(server, "a", after=["name-b", "name-c"]),
        entry(server, "b", after="name-c"),
        entry(server, "c"),
        member(server, "p", "one/1", after=["r-r"]),
        member(server, "q", "two/2", after=["r-r"]),
        member(server, "r", "one/1"),
    )
    assert [server.result(id)["deploy_status_code"] for id in "abcpqr"] == [0] * 6
    assert agent.lines("order") == ["c", "b", "a", "q", "r", "p"]


def test_independent_runs_pass_a_waiting_one_and_run_in_parallel_up_to_the_limit(server, agent):
    server.head["concurrency"] = 2
    first, waiting = entry(server, "a", HOLD), [entry(server, id, after=["name-a"]) for id in "be"]
    agent.run(first, *waiting, entry(server, "c"), entry(server, "d"))
    assert agent.lines("order") == ["c", "d"]
    server.give(first, waiting[0], {**waiting[1], "cancel": True})
    assert server.result("e")["deploy_status_reason"] == "Cancelled before it began"
    agent.release()
    server.result("b")
    assert agent.lines("order") == ["c", "d", "a", "b"]


def test_a_run_whose_dependency_fails_does_not_start_and_says_why(server, agent):
    problem = entry(server, "d", "printf broken >$heat_outputs_path.problem")
    problem["outputs"] = [{"name": "problem", "type": "String", "error_output": True}]
    agent.run(
        entry(server, "a", after=["name-b"]),
        entry(server, "b", "false"),
        entry(server, "c", after=["name-a"]),
        problem,
        entry(server, "e", after=["name-d"]),
        entry(server, "x", after=["name-y"]),
        entry(server, "y", after=["name-x"]),
        entry(server, "f", after=["absent"]),  # no run of the document has this name
    )
    assert {id: server.result(id).get("deploy_status_reason") for id in "acefxy"} == {
        "a": "dependency name-b failed",
        "c": "dependency name-a failed",
        "e": "dependency name-d failed",
        "f": None,
        "x": "depends_on forms a cycle: name-x → name-y → name-x",
        "y": "dependency name-x failed",
    }
    assert agent.lines("order") == ["b", "d", "f"]


def test_a_run_no_longer_waits_for_one_that_was_withdrawn(server, agent):
    waiting, running = entry(server, "a", after=["name-b"]), entry(server, "c", HOLD)
    agent.begin(running, waiting, entry(server, "b"))
    await_begun(server, agent, "c")
    server.give(running, waiting)
    agent.release()
    assert server.result("a")["deploy_status_code"] == 0
    assert agent.lines("order") == ["c", "a"]


@pytest.mark.parametrize("ends", ["withdrawn", "failed"])
def test_a_run_waits_for_the_newer_run_of_a_superseded_dependency(server, agent, ends):
    script = LASTING if ends == "withdrawn" else "touch $WORK/begun; false"
    first, second = (
        {**entry(server, id, text), "name": "a", "deployment_id": "d-a"}
        for id, text in (("a1", script), ("a2", "true"))
    )
    running, waiting = entry(server, "c", HOLD), entry(server, "b", after=["a"])
    agent.begin(first, running, waiting)
    server.until(agent.work.joinpath("begun").exists)
    if ends == "failed":
        await_begun(server, agent, "c")
    polls = len(server.polls)
    server.give(running, waiting, second)
    assert server.result("a1")["deploy_status_code"]
    server.until(lambda: len(server.polls) > polls)  # the agent polls again when it has the document
    agent.release()
    assert server.result("b").get("deploy_status_reason") is None
    assert agent.lines("order")[-2:] == ["a2", "b"]


def test_a_run_does_not_fail_because_its_dependency_was_withdrawn_while_it_ran(server, agent):
    waiting = entry(server, "b", after=["name-a"])
    agent.begin(entry(server, "a", LASTING), waiting)
    server.until(agent.work.joinpath("begun").exists)
    assert agent.run(waiting).get("deploy_status_reason") is None


def test_the_order_survives_a_killed_agent_and_an_accepted_result(server, agent):
    """After its result is accepted, the failed run is in no document."""
    agent.begin(entry(server, "a", after=["name-b"]), entry(server, "b", f"{HOLD}; false"))
    await_begun(server, agent, "b")
    agent.end(signal.SIGKILL)
    agent.start()
    assert server.result("b")["deploy_status_code"] == 137
    assert server.result("a")["deploy_status_reason"] == "dependency name-b failed"
    assert agent.lines("order") == []


def most_at_once(lines):
    found = now = 0
    for each in lines:
        now += 1 if each == "+" else -1
        found = max(found, now)
    return found


def test_as_many_runs_as_the_document_permits_run_at_a_time_and_each_once(server, agent):
    server.head["concurrency"] = 3
    agent.begin(*(server.entry(f"c{n}", STEP) for n in range(8)))
    server.until(lambda: len(agent.lines("steps")) == 3)
    server.give(*server.deployments, {**server.entry("last", "true"), "cancel": True})
    server.result("last")  # the agent has decided about all runs before it
    assert not agent.run_folder("c3").exists()
    agent.release()
    for n in range(8):
        assert server.result(f"c{n}")["deploy_status_code"] == 0
    assert len(agent.lines("steps")) == 16
    assert most_at_once(agent.lines("steps")) == 3
    assert len(server.signals) == 9


def test_cancelling_one_of_several_runs_leaves_the_others_running(server, agent):
    server.head["concurrency"] = 3
    entries = [server.entry(f"c{n}", STEP) for n in range(3)]
    agent.begin(*entries)
    server.until(lambda: len(agent.lines("steps")) == 3)
    server.give(entries[0], {**entries[1], "cancel": True}, entries[2])
    assert server.result("c1")["deploy_status_code"] == 143
    agent.release()
    assert [server.result(id)["deploy_status_code"] for id in ("c0", "c2")] == [0, 0]
