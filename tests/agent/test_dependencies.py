"""Runs that wait for other runs of the same server, by the option ``depends_on``."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.slow

WAIT = "until test -e $WORK/go; do sleep 0.02; done"


def entry(server, id, script="true", after=(), **inputs):
    made = server.entry(id, f"{script}; code=$?; echo {id} >>$WORK/order; exit $code", **inputs)
    return {**made, "options": {"depends_on": after} if after else {}}


def test_a_run_starts_after_those_that_it_names_although_its_name_comes_first(server, agent):
    server.give(entry(server, "a", after=["name-b", "name-c"]), entry(server, "b", after="name-c"), entry(server, "c"))
    agent.start()
    assert server.result("a")["deploy_status_code"] == 0
    assert agent.lines("order") == ["c", "b", "a"]


def test_independent_runs_pass_a_waiting_one_and_run_in_parallel_up_to_the_limit(server, agent):
    server.head["concurrency"] = 2
    server.give(
        entry(server, "a", WAIT),
        entry(server, "b", after=["name-a"]),
        *(entry(server, id) for id in ("c", "d")),
    )
    agent.start()
    server.result("c")
    server.result("d")
    assert agent.lines("order") == ["c", "d"]
    agent.work.joinpath("go").touch()
    server.result("b")
    assert agent.lines("order") == ["c", "d", "a", "b"]


def test_a_run_whose_dependency_fails_does_not_start_and_says_why(server, agent):
    problem = entry(server, "d", "printf broken >$heat_outputs_path.problem")
    problem["outputs"] = [{"name": "problem", "type": "String", "error_output": True}]
    server.give(
        entry(server, "a", after=["name-b"]),
        entry(server, "b", "false"),
        entry(server, "c", after=["name-a"]),
        problem,
        entry(server, "e", after=["name-d"]),
        entry(server, "f", after=["absent"]),  # no run of the document has this name
    )
    agent.start()
    reasons = {id: server.result(id).get("deploy_status_reason") for id in "acef"}
    failures = {"a": "dependency name-b failed", "c": "dependency name-a failed", "e": "dependency name-d failed"}
    assert reasons == {**failures, "f": None}
    assert agent.lines("order") == ["b", "d", "f"]


def test_the_names_of_resources_count_within_one_stack(server, agent):
    def member(id, stack, **how):
        return entry(server, id, deploy_stack_id=stack, deploy_resource_name=f"r-{id}", **how)

    server.give(
        member("a", "one/1", after=["r-c"]),
        member("b", "two/2", after=["r-c"]),
        member("c", "one/1"),
    )
    agent.start()
    server.result("c")
    server.result("a")
    assert agent.lines("order") == ["b", "c", "a"]


def test_a_cycle_fails_with_the_names(server, agent):
    server.give(entry(server, "a", after=["name-b"]), entry(server, "b", after=["name-a"]), entry(server, "c"))
    agent.start()
    assert server.result("a")["deploy_status_reason"] == "depends_on forms a cycle: name-a → name-b → name-a"
    assert server.result("b")["deploy_status_reason"] == "dependency name-a failed"
    assert server.result("c")["deploy_status_code"] == 0
    assert agent.lines("order") == ["c"]


def test_a_run_no_longer_waits_for_one_that_was_withdrawn(server, agent):
    waiting, running = entry(server, "a", after=["name-b"]), entry(server, "c", WAIT)
    server.give(running, waiting, entry(server, "b"))
    agent.start()
    server.until(agent.run_folder("c").joinpath("entry.json").exists)
    server.give(running, waiting)
    agent.work.joinpath("go").touch()
    assert server.result("a")["deploy_status_code"] == 0
    assert agent.lines("order") == ["c", "a"]


@pytest.mark.parametrize("ends", ["withdrawn", "failed"])
def test_a_run_waits_for_the_newer_run_of_a_superseded_dependency(server, agent, ends):
    script = "touch $WORK/begun; sleep 1000" if ends == "withdrawn" else "touch $WORK/begun; false"
    first, second = (
        {**entry(server, id, text), "name": "a", "deployment_id": "d-a"}
        for id, text in (("a1", script), ("a2", "true"))
    )
    running, waiting = entry(server, "c", WAIT), entry(server, "b", after=["a"])
    server.give(first, running, waiting)
    agent.start()
    server.until(lambda: agent.work.joinpath("begun").exists())
    if ends == "failed":
        server.until(agent.run_folder("c").joinpath("entry.json").exists)
    polls = len(server.polls)
    server.give(running, waiting, second)
    assert server.result("a1")["deploy_status_code"]
    server.until(lambda: len(server.polls) > polls)  # the agent polls again when it has the document
    agent.work.joinpath("go").touch()
    assert server.result("b").get("deploy_status_reason") is None
    assert agent.lines("order")[-2:] == ["a2", "b"]


def test_a_run_does_not_fail_because_its_dependency_was_withdrawn_while_it_ran(server, agent):
    waiting = entry(server, "b", after=["name-a"])
    server.give(entry(server, "a", "touch $WORK/begun; sleep 1000"), waiting)
    agent.start()
    server.until(lambda: agent.work.joinpath("begun").exists())
    server.give(waiting)
    assert server.result("b").get("deploy_status_reason") is None


def test_a_waiting_run_can_be_cancelled(server, agent):
    waiting, running = entry(server, "a", after=["name-b"]), entry(server, "b", WAIT)
    server.give(waiting, running)
    agent.start()
    server.until(agent.run_folder("b").joinpath("entry.json").exists)
    server.give({**waiting, "cancel": True}, running)
    assert server.result("a")["deploy_status_reason"] == "Cancelled before it began"


def test_the_order_survives_a_killed_agent_and_an_accepted_result(server, agent):
    """After its result is accepted, the failed run is in no document."""
    server.give(entry(server, "a", after=["name-b"]), entry(server, "b", f"{WAIT}; false"))
    agent.start()
    server.until(agent.run_folder("b").joinpath("entry.json").exists)
    agent.end(signal.SIGKILL)
    agent.start()
    assert server.result("b")["deploy_status_code"] == 137
    assert server.result("a")["deploy_status_reason"] == "dependency name-b failed"
    assert agent.lines("order") == []
