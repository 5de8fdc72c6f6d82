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

from support.agents import OwnAgent, own_agent
from support.server import Served, served
from support.templates import config, template

pytestmark = pytest.mark.slow

#: Records the action and its inputs. An update fails while the server has a file ``broken``.
SCRIPT = """\
#!/bin/sh
if [ "$deploy_action" = UPDATE ] && [ -e "$WORK/broken" ]; then echo broken >&2; exit 3; fi
echo "$deploy_action $database $copies" >> "$WORK/runs"
printf '%s' "$database.dump" > "$heat_outputs_path.file"
"""
ACTIONS = ("CREATE", "UPDATE", "BACKUP")
COMPONENT = {
    "type": "OS::Heat::SoftwareComponent",
    "properties": {
        "inputs": [{"name": "database"}, {"name": "copies", "type": "Number", "default": 1}],
        "outputs": [{"name": "file"}],
        "configs": [{"actions": [action], "tool": "script", "config": SCRIPT} for action in ACTIONS],
    },
}


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("databases")) as running:
        yield running


@pytest.fixture(scope="module")
def agent(stoker, tmp_path_factory) -> Iterator[OwnAgent]:
    """The agent of the server ``db1``, with the stack ``shop`` on it: ``orders`` requires ``users``."""
    folder = tmp_path_factory.mktemp("db1")
    with own_agent(folder) as process:
        process.enroll(stoker, "db1")
        process.start()
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
        resources[name] = {"type": "OS::Heat::SoftwareDeployment", "properties": properties}
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


def test_a_preview_names_every_database(stoker, agent):
    before = agent.lines()
    done = stoker.run("trigger", "shop", "database", "BACKUP", "--dry-run")
    titles = [line.partition(":")[0] for line in done.stdout.splitlines() if " on " in line]
    assert titles == ["database_BACKUP on db1/users", "database_BACKUP on db1/orders"]
    assert new_lines(agent, before) == []


def schedule(stoker: Served, name: str, *words: str) -> str:
    """Create a schedule whose time is far away, and return its path."""
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    stoker.run("schedule", "create", "shop", "database", "BACKUP", "--at", at, "--name", name, *words)
    [created] = [each for each in stoker.json("schedule", "list") if each["name"] == name]
    return f"/software_schedules/{created['id']}"


def pass_time(stoker: Served, path: str) -> None:
    """Let a time of the schedule pass, and wait until its trigger has started."""
    count = stoker.heat("GET", path).body["software_schedule"]["run_count"]
    at = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    assert stoker.heat("PATCH", path, {"at": at}).status == 200
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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("copiez=2", 'declares no input "copiez"; did you mean "copies"? --allow-undeclared'),
        ("copies=many", 'The input "copies" is a Number: "many" is not a number'),
        ("bad name=1", '"bad name" cannot be an environment variable'),
    ],
)
def test_wrong_inputs_are_refused_before_anything_is_stored(stoker, agent, value, words):
    before, triggers = agent.lines(), stoker.json("trigger", "list")
    for command in (
        ("trigger", "shop", "database", "BACKUP"),
        ("schedule", "create", "shop", "database", "BACKUP", "--cron", "0 2 * * *"),
    ):
        refused = stoker.run(*command, "-i", value, check=False)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (5, 1), refused.stderr
        assert words in refused.stderr
    assert (agent.lines(), stoker.json("trigger", "list")) == (before, triggers)


def test_undeclared_inputs_may_be_allowed(stoker, agent):
    before = agent.lines()
    words = ("--follow", "--allow-undeclared", "-i", "more=1")
    stoker.run("trigger", "shop", "users", "BACKUP", *words)
    assert new_lines(agent, before) == ["BACKUP users 1"]


def test_a_command_gets_its_inputs_or_is_refused(stoker, agent):
    configs = stoker.json("config", "list")
    assert stoker.run("run", "db1", "-i", "good_name=1", "--", 'echo "$good_name"').stdout == "1\n"
    refused = stoker.run("run", "db1", "-i", "bad name=1", "--", "env", check=False)
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (5, "", 1)
    assert '"bad name" cannot be an environment variable' in refused.stderr
    assert stoker.json("config", "list") == configs
    deleted, run = stoker.json("audit", "list", "--server", "db1", "--limit", "2")
    assert (deleted["actor"], deleted["action"]) == ("admin", "delete deployment")
    assert (run["actor"], run["action"], run["server_name"], run["config_name"]) == (
        "admin",
        "run CREATE",
        "db1",
        "run",
    )


def test_after_a_failed_update_the_backup_uses_what_the_server_has(stoker, agent, tmp_path):
    (agent.work / "broken").touch()
    path = write_template(tmp_path, ".v2")
    assert stoker.run("stack", "update", "shop", "-t", path, "--wait", check=False).returncode != 0
    before = agent.lines()
    warning = "The last update of users has not succeeded"
    assert warning in stoker.run("trigger", "shop", "database", "BACKUP", "--dry-run").stderr
    done = stoker.run("trigger", "shop", "database", "BACKUP", "--follow")
    assert warning in done.stderr
    assert new_lines(agent, before) == ["BACKUP users 1", "BACKUP orders 1"]

    (agent.work / "broken").unlink()
    stoker.run("stack", "update", "shop", "-t", path, "--wait")
    before = agent.lines()
    assert warning not in stoker.run("trigger", "shop", "database", "BACKUP", "--follow").stderr
    assert new_lines(agent, before) == ["BACKUP users.v2 1", "BACKUP orders.v2 1"]


def test_a_tolerated_member_of_a_group_is_retried(stoker, agent, tmp_path):
    before = agent.lines("members")
    script = """#!/bin/sh
echo run >> "$WORK/members"
[ -e "$WORK/first" ] || { touch "$WORK/first"; exit 3; }
"""
    group = {
        "type": "OS::Heat::SoftwareDeploymentGroup",
        "properties": {"config": {"get_resource": "config"}, "servers": {"a": "db1", "b": "db1"}},
        "update_policy": {"batch_create": {"max_batch_size": 2, "max_fail_percentage": 50}},
    }
    path = tmp_path / "group.json"
    path.write_text(json.dumps(template({"config": config(script), "all": group})))
    earlier = {each["id"] for each in stoker.json("deployment", "list")}
    stoker.run("stack", "create", "group", "-t", str(path), "--wait")
    added = [each for each in stoker.json("deployment", "list") if each["id"] not in earlier]
    [failed] = [each for each in added if each["status"] == "FAILED"]
    stoker.run("deployment", "retry", failed["id"], "--wait")
    assert agent.lines("members")[len(before) :] == ["run"] * 3
    assert stoker.json("stack", "show", "group")["stack_status"] == "UPDATE_COMPLETE"
    refused = stoker.run("deployment", "retry", failed["id"], check=False)
    assert (refused.returncode, "only what failed is retried" in refused.stderr) == (5, True)
