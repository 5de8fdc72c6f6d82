"""Triggers from the command line: followed to the end, cancelled half way, found again in the history."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from journeys.conftest import EXAMPLES
from support.processes import default_interrupt
from support.server import LOCAL_SERVERS, STOKER, Served, served

pytestmark = pytest.mark.slow

SERVERS = ("one", "two", "three")
BACKUP = ("trigger", "shop", "databases", "BACKUP")


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    """With the example on three servers, which every test leaves as it was."""
    with served(tmp_path_factory.mktemp("triggers"), LOCAL_SERVERS) as running:
        running.run("stack", "create", "shop", "-t", str(EXAMPLES / "backup.yaml"), "--wait")
        yield running


@pytest.fixture
def started(stoker) -> Iterator[list[subprocess.Popen[str]]]:
    """Commands under way, ended with the test."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for each in running:
        each.kill()
        each.communicate()


def start(stoker: Served, started: list[subprocess.Popen[str]], *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    with default_interrupt():
        process = subprocess.Popen([*STOKER, *words], env=stoker.environment, stdout=pipe, stderr=pipe, text=True)
    started.append(process)
    return process


def backups(stoker: Served, pattern: str) -> list[str]:
    return sorted(each.read_text() for each in stoker.state_dir.glob(f"local/*/home/{pattern}"))


def newest(stoker: Served) -> str:
    return str(stoker.json("trigger", "list", "--limit", "1")[0]["id"])


def test_a_trigger_is_followed_to_its_end(stoker):
    before = stoker.json("deployment", "list")
    done = stoker.run(*BACKUP, "-i", "label=friday", "-i", "pause=0.5", "--follow", "-o", "json")

    shown = json.loads(done.stdout)
    assert (shown["status"], shown["total"], shown["complete"]) == ("COMPLETE", 3, 3)
    assert {each["server_name"] for each in shown["targets"]} == set(SERVERS)
    assert all("friday: 5 records" in each["run"]["output_values"]["backup"] for each in shown["targets"])
    assert backups(stoker, "friday.backup") == ["1\n2\n3\n4\n5\n"] * 3
    for server in SERVERS:
        assert f"  {server}  COMPLETE" in done.stderr
    assert " %  record " in done.stderr  # seen before the end
    after = stoker.json("deployment", "list")
    assert [each for each in after if each["id"] in {old["id"] for old in before}] == before  # the stack's own

    logs = stoker.run("trigger", "logs", shown["id"]).stdout.splitlines()
    assert sorted(logs) == sorted(f"{server} | saved record {n}" for server in SERVERS for n in range(1, 6))
    again = stoker.run("trigger", "logs", "--follow", shown["id"]).stdout.splitlines()
    assert sorted(again) == sorted(logs)
    row = stoker.run("trigger", "show", shown["id"]).stdout
    assert "friday" in row
    assert "COMPLETE" in row


def test_a_command_that_fails_on_the_canary_runs_on_no_other_server(stoker):
    words = ("--canary", "1", "one", "two", "--", 'touch "$HOME/canary"; exit 3')
    failed = stoker.run("run", *words, check=False)

    assert (failed.returncode, "1 of 2 failed on the canaries: 1 were not run" in failed.stderr) == (3, True)
    done = stoker.run("run", *words[:-1], "echo $((40 + 2))")
    assert sorted(line.split() for line in done.stdout.splitlines()) == [["one", "|", "42"], ["two", "|", "42"]]


def test_a_trigger_is_cancelled_and_retried(stoker, started):
    words = (*BACKUP, "-i", "label=half", "-i", "pause=60", "--max-concurrent", "2", "--follow")
    process = start(stoker, started, *words)
    stoker.until(lambda: len(backups(stoker, "half.backup.part")) == 2)
    id = newest(stoker)
    stoker.run("trigger", "cancel", id, "--wait")

    _, err = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "is CANCELLED" in err.splitlines()[-1]
    shown = stoker.json("trigger", "show", id)
    assert (shown["status"], shown["cancelled"], shown["complete"]) == ("CANCELLED", 3, 0)
    assert not backups(stoker, "half.backup")
    stoker.until(lambda: not backups(stoker, "half.backup.part"))  # what on_cancel takes away

    retried = start(stoker, started, "trigger", "retry", id, "--follow")
    stoker.until(lambda: len(backups(stoker, "half.backup.part")) == 2)
    assert newest(stoker) != id
    stoker.run("trigger", "cancel", newest(stoker), "--wait")
    assert retried.wait(60) != 0
    stoker.run("trigger", "delete", "--yes", id)
    gone = stoker.run("trigger", "show", id, check=False)
    assert (gone.returncode, len(gone.stderr.splitlines())) == (4, 1)


def test_a_failed_deployment_is_retried_in_place(stoker):
    stoker.run(*BACKUP, "-i", "label=deep/er", "--on", "three", "--follow", check=False)
    [target] = stoker.json("trigger", "show", newest(stoker))["targets"]
    [home] = [each.parent for each in stoker.state_dir.glob("local/*/home/database") if _is(stoker, each, "three")]
    home.joinpath("deep").mkdir()
    stoker.run("deployment", "retry", "--wait", target["deployment_id"])

    runs = stoker.json("deployment", "history", target["deployment_id"])
    assert [(each["number"], each["status"]) for each in runs] == [(2, "COMPLETE"), (1, "FAILED")]
    done = stoker.run("deployment", "retry", target["deployment_id"], check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (5, 1)


def _is(stoker: Served, database: os.PathLike[str], name: str) -> bool:
    """Whether a local server's database is the one of the server of that name."""
    [server] = [each for each in stoker.json("server", "list") if each["name"] == name]
    return server["id"] in str(database)


def test_a_schedule_starts_its_trigger_in_time(stoker):
    words = ("--on", "one", "-i", "label=planned", "--name", "soon", "--at", in_time(hours=1))
    words += ("--misfire-policy", "RUN")
    stoker.run("schedule", "create", "shop", "databases", "BACKUP", *words)
    [schedule] = stoker.heat("GET", "/software_schedules").body["software_schedules"]
    # Not by the command, which a busy machine may start later than that.
    changed = stoker.heat("PATCH", f"/software_schedules/{schedule['id']}", {"at": in_time(seconds=3)})
    assert changed.status == 200, changed.raw
    stoker.until(lambda: bool(backups(stoker, "planned.backup")))

    stoker.run("schedule", "set", "soon", "--disable")
    shown = stoker.json("schedule", "show", "soon")
    assert (shown["enabled"], bool(shown["last_trigger_id"])) == (False, True)
    stoker.run("schedule", "delete", "--yes", "soon")
    assert stoker.json("schedule", "list") == []


def in_time(**units: int) -> str:
    return (datetime.now(UTC) + timedelta(**units)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_labels_select_servers_and_policies_refuse_them(stoker):
    stoker.run("server", "label", "one", "role=main", "site=a")
    stoker.run("server", "label", "two", "role=main", "site-")
    assert [each["name"] for each in stoker.json("server", "list", "--label", "role=main", "--label", "site=a")] == [
        "one"
    ]
    done = stoker.run(*BACKUP, "-i", "label=labeled", "--label", "role=main", "--follow")
    assert "2 of 2 complete" in done.stderr
    assert len(backups(stoker, "labeled.backup")) == 2

    shown = stoker.json("server", "policy", "one", "--group", "ansible", "--max-concurrent", "2")
    assert shown["policy_source"] == "server"
    assert shown["policy"]["groups"] == ["ansible"]
    refused = stoker.run(*BACKUP, "-i", "label=refused", "--on", "one", "--follow", check=False)
    assert refused.returncode == 5
    assert "allows only ansible" in refused.stderr
    [newest_one, *_] = stoker.json("audit", "list", "--server", "one")
    assert newest_one["outcome"] == "REFUSED"
    assert "REFUSED" in stoker.run("audit", "list").stdout
    assert stoker.json("server", "policy", "one", "--clear")["policy_source"] == "site"
    stoker.run(*BACKUP, "-i", "label=refused", "--on", "one", "--follow")
    assert not stoker.json("server", "label", "two", "role-")


def test_follow_continues_after_a_restart_of_the_service(stoker, started):
    process = start(stoker, started, *BACKUP, "-i", "label=kept", "-i", "pause=1", "--on", "three", "--follow")
    assert process.stderr is not None
    while "RUNNING" not in (line := process.stderr.readline()):
        assert line
    stoker.kill9()
    stoker.restart()
    _, err = process.communicate(timeout=120)

    assert process.returncode == 0, err
    assert "1 of 1 complete" in err
    assert backups(stoker, "kept.backup") == ["1\n2\n3\n4\n5\n"]
