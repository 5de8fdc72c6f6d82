"""Time that is over: of an operation, of one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stoker.deployments import runs, service
from stoker.deployments.run_end import DEADLINE as RUN_DEADLINE
from stoker.deployments.run_end import limit_of
from stoker.stacks.engine import DEADLINE
from stoker.stacks.operations import Options
from stoker.store.runs import page_output
from support.stacks import world
from support.templates import chain, config, deployment, on, server, template


def test_after_the_deadline_the_stack_fails_and_its_runs_are_withdrawn(heat):
    stack = heat.create(chain(2), options=Options(timeout_mins=5))
    ((kind, _, _, at),) = heat.work.jobs
    assert kind == DEADLINE
    assert timedelta(minutes=4) < at - datetime.now(UTC) <= timedelta(minutes=5)

    server_id = heat.resources(stack)["server"].physical_id
    heat.work.run(DEADLINE)
    stack = heat.settled(stack.id)
    assert (stack.status, stack.reason) == ("FAILED", "Timed out")
    assert heat.states(stack)["d0"] == "CREATE_FAILED"
    assert heat.to_run(server_id) == []
    assert heat.deployments()[0].status_reason == "Deployment cancelled."


def test_the_deadline_of_an_ended_operation_does_nothing(heat):
    stack = heat.create(chain(1))
    (late,) = heat.work.jobs
    heat.signal(stack, "d0")
    heat.work.handlers[DEADLINE](late[2])

    assert heat.settled(stack.id).status == "COMPLETE"


@pytest.mark.parametrize("owner", ["stack", "trigger"])
def test_the_timeout_of_a_run_begins_when_its_agent_starts_the_run(heat, fleet, owner, clock):
    (machine,) = fleet.servers(1)
    if owner == "stack":
        heat.create(template({"config": config(), "d": on(machine.id, timeout=60)}))
    else:
        fleet.trigger_on(machine, timeout=60)
    (queued,) = heat.deployments()
    clock.until(heat.work, "2026-05-01T12:30")
    assert heat.deployments() == [queued]
    heat.store.write(lambda tx: runs.heartbeat(tx, server_id=machine.id, config_id=queued.config_id))
    begun = heat.deployments()
    clock.until(heat.work, "2026-05-01T12:31:14")
    assert heat.deployments() == begun
    clock.until(heat.work, "2026-05-01T12:31:15")
    (ended,) = heat.deployments()
    assert (ended.status, ended.status_reason) == ("FAILED", f"Timed out: {queued.status_reason}")


def test_a_run_that_waits_for_its_agent_keeps_a_timeout_of_two_years(heat):
    """A run may take ten years; only the durations that agents report are limited to one."""
    two_years = 2 * 365 * 24 * 3600
    heat.create(template({"config": config(), "server": server(), "d": deployment(timeout=two_years)}))
    (run,) = heat.deployments()
    assert heat.store.write(lambda tx: limit_of(tx, run)) == two_years


@pytest.mark.parametrize("how", ["signaled", "reported", "cancelled"])
def test_an_ended_run_has_no_deadline(heat, how):
    stack = heat.create(template({"config": config(), "server": server(), "d": deployment(timeout=60)}))
    (run,) = heat.deployments()
    assert RUN_DEADLINE in heat.work.kinds()
    if how == "signaled":
        heat.signal(stack, "d")
    elif how == "reported":
        heat.report(run)
    else:
        heat.store.write(lambda tx: service.cancel(tx, heat.engine.env, run, "ann"))

    assert heat.work.jobs == []


def test_a_long_text_in_a_signal_is_cut_to_the_sites_limit(store):
    heat = world(store, limits={"log_bytes": 1000})
    heat.signal(heat.create(chain(1)), "d0", deploy_stdout="x" * 5000)
    found = heat.read(page_output, heat.deployments()[0].id, 0).chunks
    assert 0 < sum(each.size for each in found) <= 1000
