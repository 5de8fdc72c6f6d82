"""Machines whose clocks are wrong, or are set while Stoker runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support import databases
from support.agent_protocol import deploy, enroll
from support.clock import FakeTime
from support.server import SHARED_SECRET, Answer, Served, served
from support.templates import define, template

HOUR = timedelta(hours=1)
TIMEOUT = 600
#: Seconds until the only deadline of a run, on the clock of PostgreSQL.
DEADLINE = """
SELECT (due - extract(epoch FROM clock_timestamp()) * 1000000) / 1000000 FROM jobs WHERE kind = 'deployment.deadline'
"""


@contextmanager
def site(folder: Path, server: str, clock: FakeTime) -> Iterator[tuple[Served, Served, str]]:
    """Yield a process with this computer's clock, one with ``clock``, and the URL of their database."""
    for name in ("right", "wrong"):
        folder.joinpath(name).mkdir()
    with (
        databases.postgresql_url(server) as url,
        served(folder / "right", *SHARED_SECRET, database=url) as right,
        served(folder / "wrong", *SHARED_SECRET, database=url, login_of=right, clock=clock) as wrong,
    ):
        yield right, wrong, url


def start_run(stoker: Served) -> str:
    """Start a run with a timeout on a server without an agent, and return the path of the deployment."""
    server, _ = enroll(stoker, "web1")
    return f"/software_deployments/{deploy(stoker, server['id'], timeout=TIMEOUT, action='CREATE')['id']}"


def start_delay(stoker: Served, name: str, seconds: float = 1.0) -> Callable[[], bool]:
    """Create a stack that waits for a time, and return whether it has ended."""
    delay = define("OS::Heat::Delay", min_wait=seconds)
    path = stoker.create_stack(name, template({"delay": delay}))
    return lambda: bool(stoker.stack(path)["stack_status"] == "CREATE_COMPLETE")


def call_queue(stoker: Served, verb: str, path: str, body: Any = None) -> Answer:
    headers = {"X-Auth-Token": stoker.token, "Client-ID": "6f1fa1f0-8f4d-4d3e-9a3c-5b1f0e0c1c11"}
    return stoker.request(verb, f"/messaging/v2/queues/q{path}", body, headers)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_deadline_is_right_whatever_the_clock_of_the_process_says(tmp_path, postgresql_server, ahead):
    clock = FakeTime(tmp_path)
    clock.move(ahead)
    with site(tmp_path, postgresql_server, clock) as (right, wrong, url):
        path = start_run(wrong)
        with psycopg.connect(url) as connection:
            (seconds,) = connection.execute(DEADLINE).fetchone() or (None,)
        assert seconds is not None, right.heat("GET", path).raw
        assert 0 < seconds < TIMEOUT + 60
        assert right.heat("GET", path).body["software_deployment"]["status"] == "IN_PROGRESS"


def test_a_process_whose_clock_is_ahead_steals_no_lease_and_loses_no_agent(tmp_path, postgresql_server):
    clock = FakeTime(tmp_path)
    clock.move(HOUR)
    with site(tmp_path, postgresql_server, clock) as (right, wrong, _):
        assert call_queue(right, "POST", "/messages", {"messages": [{"body": "x", "ttl": 7200}]}).status == 201
        assert call_queue(wrong, "GET", "/messages?echo=true").body["messages"], "the message has not expired"

        token = right.heat("POST", "/servers", {"name": "web1", "expires_in": 600}).body["enrollment"]["token"]
        enrolled = wrong.request("POST", "/agent/v1/enroll", {"token": token, "instance": "i", "hostname": "h"})
        assert enrolled.status == 201, enrolled.raw
        key = {"Authorization": f"Bearer {enrolled.body['key']}"}
        assert right.request("GET", "/agent/v1/document", headers=key).status == 200, enrolled.body
        right.until(lambda: right.heat("GET", "/servers/web1").body["server"]["status"] == "ONLINE")
        assert wrong.heat("GET", "/servers/web1").body["server"]["status"] == "ONLINE"


def test_a_clock_that_is_set_back_delays_no_job_of_several_processes(tmp_path, postgresql_server):
    clock = FakeTime(tmp_path)
    with site(tmp_path, postgresql_server, clock) as (right, wrong, _):
        right.stop()  # the other process runs all jobs
        has_ended = start_delay(wrong, "s")
        clock.move(-HOUR)
        wrong.until(has_ended)
        clock.move(HOUR)
        path = start_run(wrong)
        wrong.until(start_delay(wrong, "t"))
        assert wrong.heat("GET", path).body["software_deployment"]["status"] == "IN_PROGRESS"


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
