"""Time that is over: of an operation, of one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from stoker.deployments.deadlines import DEADLINE as RUN_DEADLINE
from stoker.stacks.engine import DEADLINE
from stoker.stacks.operations import Options
from support.templates import chain, config, deployment, server, template


def test_an_operation_that_goes_on_has_a_deadline(heat):
    heat.create(chain(1), options=Options(timeout_mins=5))

    ((kind, _, _, at),) = heat.work.jobs
    assert kind == DEADLINE
    assert timedelta(minutes=4) < at - datetime.now(UTC) <= timedelta(minutes=5)


def test_past_it_the_stack_fails_and_its_runs_are_withdrawn(heat):
    stack = heat.create(chain(2))
    server_id = heat.resources(stack)["server"].physical_id
    heat.work.run(DEADLINE)
    stack = heat.settled(stack.id)

    assert (stack.status, stack.reason) == ("FAILED", "Timed out")
    assert heat.states(stack)["d0"] == "CREATE_FAILED"
    assert heat.to_run(server_id) == []
    assert heat.deployments()[0].status_reason == "Deployment cancelled."


def test_the_deadline_of_an_operation_that_is_over_means_nothing(heat):
    stack = heat.create(chain(1))
    (late,) = heat.work.jobs
    heat.signal(stack, "d0")
    heat.work.handlers[DEADLINE](late[2])

    assert heat.settled(stack.id).status == "COMPLETE"


def test_a_run_past_its_own_time_fails_with_what_was_known(heat):
    resources = {"config": config(), "server": server(), "d": deployment(timeout=60)}
    stack = heat.create(template(resources))
    assert RUN_DEADLINE in heat.work.kinds()
    heat.work.run(RUN_DEADLINE)
    stack = heat.settled(stack.id)

    assert stack.reason.endswith("Deployment to server failed: Timed out: Waiting for the agent")


def test_a_run_that_ended_has_no_deadline_any_more(heat):
    resources = {"config": config(), "server": server(), "d": deployment(timeout=60)}
    heat.signal(heat.create(template(resources)), "d")

    assert heat.work.jobs == []
