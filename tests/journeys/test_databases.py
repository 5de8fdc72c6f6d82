"""
Several deployments of a component on one server, with a real agent: triggers and schedules reach each of them, with
checked inputs, and a server that was offline runs once.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from support.agents import OwnAgent, enrolled_agent
from support.server import Served, served
from support.templates import define, template

pytestmark = pytest.mark.slow

#: Records the action and its inputs. An update fails while the server has a file ``broken``.
SCRIPT = """\
#!/bin/sh
if [ "$deploy_action" = UPDATE ] && [ -e "$WORK/broken" ]; then echo broken >&2; exit 3; fi
echo "$deploy_action $database $copies" >> "$WORK/runs"
printf '%s' "$database.dump" > "$heat_outputs_path.file"
"""
ACTIONS = ("CREATE", "UPDATE", "BACKUP")
COMPONENT = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "database"}, {"name": "copies", "type": "Number", "default": 1}],
    outputs=[{"name": "file"}],
    configs=[{"actions": [action], "tool": "script", "config": SCRIPT} for action in ACTIONS],
)


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("databases")) as running:
        yield running


@pytest.fixture(scope="module")
def agent(stoker, tmp_path_factory) -> Iterator[OwnAgent]:
    """The agent of the server ``db1``, with the stack ``shop`` on it: ``orders`` requires ``users``."""
    folder = tmp_path_factory.mktemp("db1")
    with enrolled_agent(folder, stoker, "db1") as process:
        write_template(folder)
        stoker.run("stack", "create", "shop", "-t", str(folder / "t.json"), "--wait")
        yield process


def write_template(folder, suffix: str = "") -> str:
    resources = {"database": COMPONENT}
    for name in ("orders", "users"):
        properties = {
            "config": {"get_resource": "database"},
            "server": "db1",
            "input_values": {"database": name + suffix},
        }
        resources[name] = define("OS::Heat::SoftwareDeployment", **properties)
    resources["orders"]["depends_on"] = "users"
    (folder / "t.json").write_text(json.dumps(template(resources)))
    return str(folder / "t.json")


def new_lines(agent: OwnAgent, before: list[str]) -> list[str]:
    return agent.lines()[len(before) :]


def test_every_database_is_backed_up_in_the_order_of_requirements(stoker, agent):
    before = agent.lines()
    done = stoker.run("trigger", "shop", "database", "BACKUP", "-i", "copies=2", "--follow")
    assert new_lines(agent, before) == ["BACKUP users 2", "BACKUP orders 2"]
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


def schedule(stoker: Served, name: str, *words: str) -> str:
    """Create a schedule whose time is far away, and return its path."""
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    stoker.run("schedule", "create", "shop", "database", "BACKUP", "--at", at, "--name", name, *words)
    [created] = [each for each in stoker.json("schedule", "list") if each["name"] == name]
    return f"/software_schedules/{created['id']}"


def pass_time(stoker: Served, path: str) -> None:
    """Let a time of the schedule pass, and wait until its trigger has started."""
    count = stoker.heat("GET", path).body["software_schedule"]["run_count"]

    def is_accepted() -> bool:  # a request that takes longer than a second names a time that has passed
        at = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        return stoker.heat("PATCH", path, {"at": at}).status == 200

    stoker.until(is_accepted)
    stoker.until(lambda: stoker.heat("GET", path).body["software_schedule"]["run_count"] == count + 1)


@contextlib.contextmanager
def without_recent_polls(stoker: Served) -> Iterator[None]:
    """Let the agents' polls be so long ago that no agent can have begun what is scheduled inside the block."""

    def shift(seconds: int) -> None:
        path = stoker.state_dir / "stoker.db"
        with contextlib.closing(sqlite3.connect(path, timeout=60)) as database, database:
            database.execute("UPDATE servers SET last_seen = last_seen + ?", (seconds * 1_000_000,))

    stoker.stop()  # it writes the last polls later
    shift(-300)
    stoker.restart()
    yield
    shift(300)


def test_a_schedule_backs_up_every_database(stoker, agent):
    before = agent.lines()
    pass_time(stoker, schedule(stoker, "nightly"))
    stoker.until(lambda: len(new_lines(agent, before)) == 2)
    assert new_lines(agent, before) == ["BACKUP users 1", "BACKUP orders 1"]


@pytest.mark.parametrize(
    ("words", "copies"), [((), ["3"]), (("--overlap-policy", "QUEUE"), ["1", "2", "3"])], ids=["REPLACE", "QUEUE"]
)
def test_a_server_that_was_offline_runs_once_at_its_return_unless_its_runs_are_queued(stoker, agent, words, copies):
    before = agent.lines()
    agent.end()
    path = schedule(stoker, f"offline{len(words)}", *words)
    with without_recent_polls(stoker):
        for number in (1, 2, 3):
            trigger = {"stack": "shop", "resource": "database", "action": "BACKUP", "input_values": {"copies": number}}
            assert stoker.heat("PATCH", path, {"trigger": trigger}).status == 200
            pass_time(stoker, path)
    agent.start()
    expected = [f"BACKUP {name} {number}" for number in copies for name in ("users", "orders")]
    stoker.until(lambda: len(new_lines(agent, before)) >= len(expected))
    triggers = stoker.json("trigger", "list", "--limit", "3")
    stoker.until(
        lambda: all(each["status"] != "IN_PROGRESS" for each in stoker.json("trigger", "list", "--limit", "3"))
    )
    assert sorted(new_lines(agent, before)) == sorted(expected)
    statuses = [each["status"] for each in stoker.json("trigger", "list", "--limit", "3")]
    assert statuses == ["COMPLETE"] + ["COMPLETE" if words else "CANCELLED"] * 2, triggers
