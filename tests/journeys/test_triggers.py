"""Triggers from the command line: followed to the end, cancelled half way, found again in the history."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

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
