"""A machine whose clock is set while Stoker runs. ``test_faults`` has a process whose clock is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from support.agent_protocol import deploy, enroll
from support.clock import FakeTime
from support.server import Served, served
from support.templates import define, template

HOUR = timedelta(hours=1)


def start_run(stoker: Served) -> str:
    """Start a run with a timeout on a server without an agent, and return the path of the deployment."""
    server, _ = enroll(stoker, "web1")
    return f"/software_deployments/{deploy(stoker, server['id'], timeout=600, action='CREATE')['id']}"


def start_delay(stoker: Served, name: str, seconds: float = 1.0) -> Callable[[], bool]:
    """Create a stack that waits for a time, and return whether it has ended."""
    delay = define("OS::Heat::Delay", min_wait=seconds)
    path = stoker.create_stack(name, template({"delay": delay}))
    return lambda: bool(stoker.stack(path)["stack_status"] == "CREATE_COMPLETE")


def test_a_clock_that_is_set_changes_no_deadline_of_a_single_process(tmp_path):
    clock = FakeTime(tmp_path)
    with served(tmp_path, clock=clock) as stoker:
        path = start_run(stoker)
        has_ended = start_delay(stoker, "back", 2.0)
        clock.move(-HOUR)
        stoker.until(has_ended)
        clock.move(HOUR)
        stoker.until(start_delay(stoker, "ahead"))  # the jobs that are due have run
        assert stoker.heat("GET", path).body["software_deployment"]["status"] == "IN_PROGRESS"
        stoker.until(lambda: "clock.differs" in stoker.output)
        warning = "the machine's clock was set, and Stoker's time is "
        assert f"clock: {warning}" in stoker.run("status", "-o", "json", check=False).stdout
        for words in (("schedule", "list"), ("server", "policy", "web1")):
            assert f"Warning: {warning}" in stoker.run(*words).stderr
