"""
Several deployments of a component on one server, with a real agent: triggers and schedules reach each of them, and a
command that follows a trigger continues after the end of the service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from support.agents import OwnAgent, enrolled_agent
from support.server import Served, served
from support.templates import define, on, template

pytestmark = pytest.mark.slow

#: Records the action and its inputs, and ends when the server has no file ``hold``.
SCRIPT = """\
#!/bin/sh
echo "$deploy_action $database $copies" >> "$WORK/runs"
while [ -e "$WORK/hold" ]; do sleep 0.05; done
printf '%s' "$database.dump" > "$heat_outputs_path.file"
"""
COMPONENT = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "database"}, {"name": "copies", "type": "Number", "default": 1}],
    outputs=[{"name": "file"}],
    configs=[{"actions": ["CREATE", "BACKUP"], "tool": "script", "config": SCRIPT}],
)
BACKUP = ("shop", "database", "BACKUP")


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("databases")) as running:
        yield running


@pytest.fixture(scope="module")
def shop(stoker, tmp_path_factory) -> Iterator[OwnAgent]:
    """The agent of the server ``db1``, with the stack ``shop`` on it: ``orders`` requires ``users``."""
    with enrolled_agent(tmp_path_factory.mktemp("db1"), stoker, "db1") as running:
        orders, users = (on("db1", "database", input_values={"database": name}) for name in ("orders", "users"))
        resources = {"database": COMPONENT, "orders": orders | {"depends_on": "users"}, "users": users}
        running.folder.joinpath("t.json").write_text(json.dumps(template(resources)))
        stoker.run("stack", "create", "shop", "-t", str(running.folder / "t.json"), "--wait")
        yield running


@pytest.fixture
def agent(shop) -> OwnAgent:
    """The agent, without the lines of earlier runs."""
    shop.work.joinpath("runs").unlink()
    return shop


def test_every_database_is_backed_up_in_the_order_of_requirements(stoker, agent):
    done = stoker.run("trigger", *BACKUP, "-i", "copies=2", "--follow")
    assert agent.lines() == ["BACKUP users 2", "BACKUP orders 2"]
    assert "db1/users  COMPLETE  file=users.dump" in done.stderr
    assert "db1/orders  COMPLETE  file=orders.dump" in done.stderr
    assert "2 of 2 complete" in done.stderr.splitlines()[-1]

    [newest] = stoker.json("trigger", "list", "--limit", "1")
    assert stoker.run("trigger", "outputs", newest["id"], "file", "-o", "value").stdout == (
        "db1/users\tfile\tusers.dump\ndb1/orders\tfile\torders.dump\n"
    )
    shown = stoker.run("trigger", "show", newest["id"]).stdout
    assert "db1/orders" in shown
    assert "orders.dump" in shown


def test_a_schedule_backs_up_every_database(stoker, agent):
    def at(**later: int) -> str:
        return (datetime.now(UTC) + timedelta(**later)).isoformat()

    stoker.run("schedule", "create", *BACKUP, "--at", at(hours=1), "--name", "nightly")
    path = f"/software_schedules/{stoker.json('schedule', 'show', 'nightly')['id']}"
    # A request that takes longer than a second names a time that has passed.
    stoker.until(lambda: stoker.heat("PATCH", path, {"at": at(seconds=1)}).status == 200)
    stoker.until(lambda: agent.lines() == ["BACKUP users 1", "BACKUP orders 1"])
    assert stoker.heat("GET", path).body["software_schedule"]["run_count"] == 1


def test_following_continues_after_the_end_of_the_service(stoker, agent):
    hold = agent.work / "hold"
    hold.touch()
    with ThreadPoolExecutor(1) as executor:
        followed = executor.submit(stoker.run, "trigger", *BACKUP, "--follow")
        stoker.until(lambda: agent.lines() == ["BACKUP users 1"])
        stoker.kill9()
        hold.unlink()
        stoker.restart()
        assert "2 of 2 complete" in followed.result().stderr
    assert agent.lines() == ["BACKUP users 1", "BACKUP orders 1"]
