"""Following a trigger: what is shown on the way, and what the command ends with."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import pytest

from client.conftest import drawn, on_terminal
from client.story import END, TriggerStory, Wait, target, trigger
from stoker_client.cli._runs import order, seconds_of
from stoker_client.cli._trigger_views import TriggerTable
from stoker_client.triggers import Watch
from support.http_stub import Said

pytestmark = pytest.mark.slow

FOLLOW = ("trigger", "show", "--follow")


@pytest.fixture
def follow(site, stoker):
    """Tells a story of a trigger on the servers ``db1`` and ``db2`` to the command that follows it."""

    def follow(*steps, **more):
        return stoker(*FOLLOW, TriggerStory(site, *steps, **more).id)

    return follow


def lines(err: str) -> list[str]:
    """What was told, without the times."""
    return [re.sub(r"^ *[0-9.]+ s  ", "", line) for line in err.splitlines()]


def test_each_change_is_a_line_and_success_exits_with_0(follow):
    result = follow(
        target(0, "IN_PROGRESS", state="QUEUED"),
        target(0, "IN_PROGRESS", state="RUNNING", percent=40.0, message="dumping"),
        trigger("IN_PROGRESS", queued=1, running=1),
        trigger("IN_PROGRESS", queued=1, running=1, status_reason="Cancelling"),
        target(0, "IN_PROGRESS", state="RUNNING", percent=40.0, message="dumping", silent_seconds=3),
        target(0, "IN_PROGRESS", state="UNRESPONSIVE", silent_seconds=31.2),
        target(0, "IN_PROGRESS", state="UNRESPONSIVE", silent_seconds=36.2),
        target(0, "COMPLETE", "Outputs received", state="DONE", percent=100.0, status_code=0),
        target(1, "COMPLETE", "Outputs received", state="DONE", status_code=0),
        trigger("COMPLETE", queued=0, running=0, complete=2, status_reason="All"),
        END,
    )

    assert result.code == 0, result.err
    assert result.out == ""
    assert lines(result.err) == [
        "database BACKUP  IN_PROGRESS  0 of 2 complete, 2 queued",
        "db1  WAITING FOR AGENT",
        "db1  RUNNING  40 %  dumping",
        "database BACKUP  IN_PROGRESS  0 of 2 complete, 1 running, 1 queued  Cancelling",
        "db1  UNRESPONSIVE",
        "db1  COMPLETE  Outputs received",
        "db2  COMPLETE  Outputs received",
        "database BACKUP  COMPLETE  2 of 2 complete  All",
    ]


def test_the_lines_name_the_deployment_its_outputs_and_what_changed(site, stoker):
    story = TriggerStory(site, servers=("db1", "db1", "db2"))
    for resource, found in zip(("a", "b", "a"), story.targets, strict=True):
        found["resource_name"] = resource
    values = {"size": "5 MB\n", "where": ["x", 1], "deploy_stdout": "x"}
    changes = [{"item": "/a", "outcome": "changed"}, {"item": "/b", "outcome": "changed"}]
    done = "Outputs received"
    story.steps = [
        target(0, "COMPLETE", done, output_values=values, status_code=0),
        target(1, "FAILED", "no space", output_values={"size": "9"}, status_code=3),
        target(2, "COMPLETE", done, status_code=0),
        target(2, "COMPLETE", done, status_code=0, changed=True, changes=changes),
        target(2, "COMPLETE", done, status_code=0, changed=False, changes=[]),
        trigger("FAILED", queued=0, complete=2, failed=1, changed=1, unchanged=1, status_reason="1 of 3 failed"),
        END,
    ]

    result = stoker(*FOLLOW, story.id)

    assert lines(result.err)[1:8] == [
        'db1/a  COMPLETE  size=5 MB, where=["x", 1]',
        "db1/b  FAILED  no space",
        "db1/b: exit 3: no space",
        "db2  COMPLETE  Outputs received",
        "db2  COMPLETE  changed 2 items",
        "db2  COMPLETE  nothing changed",
        "database BACKUP  FAILED  2 of 3 complete (1 changed, 1 unchanged), 1 failed  1 of 3 failed",
    ]


def test_failures_are_printed_and_the_highest_code_is_the_exit_code(site, stoker):
    story = TriggerStory(
        site,
        target(0, "FAILED", "non-zero", status_code=3, output_values={"deploy_stderr": "no\nroom\n"}),
        target(1, "FAILED", None, state="DONE", status_code=None),
        target(2, "FAILED", "it broke"),
        trigger("FAILED", failed=3, queued=0, status_reason="too many failed"),
        END,
        servers=("db1", "db2", "db3"),
    )
    agent = story.agents["db3"]
    agent.finish(agent.entries()[0]["id"], 1, deploy_stderr="asked for\n")

    result = stoker(*FOLLOW, story.id, "-o", "json")

    assert result.code == 3
    told = lines(result.err)
    assert "db1: exit 3: non-zero: room" in told
    assert "db2: no reason given" in told
    assert "db3: exit 1: it broke: asked for" in told, "the reason may be in the deployment"
    assert told[-1] == "stoker: database BACKUP is FAILED: too many failed"
    shown = json.loads(result.out)
    assert (shown["status"], [each["status"] for each in shown["targets"]]) == ("FAILED", ["FAILED"] * 3)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    """Wait until the command prints ``words`` as a progress line."""
    assert process.stderr is not None
    while words not in (line := process.stderr.readline()):
        assert line, "the command ended"


def test_a_trigger_that_is_cancelled_or_has_ended_is_no_success(site, stoker, follow):
    end = trigger("CANCELLED", complete=1, cancelled=1)
    result = follow(target(0, "COMPLETE"), target(1, "CANCELLED"), end, END)

    assert result.code == 1
    assert result.err.splitlines()[-1] == "stoker: database BACKUP is CANCELLED: 1 of 2 complete, 1 cancelled, 2 queued"
    story = TriggerStory(site, END, servers=("db1",), status="FAILED", failed=1, queued=0)
    story.targets[0].update(status="FAILED", run={"status_code": 9})
    assert stoker(*FOLLOW, story.id).code == 9


def test_a_service_without_events_is_an_error(site, stoker):
    story = TriggerStory(site)
    site.answers.insert(0, ("GET", "/events", lambda _: Said(body=b"{}")))

    result = stoker(*FOLLOW, story.id)

    assert result.code == 1
    assert "sends no events" in result.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "more", "messages"),
    [
        (FOLLOW, (), ("no longer watching; the trigger continues", "`stoker trigger cancel {id}` ends it")),
        (
            ("trigger", "cancel"),
            ("--wait",),
            ("no longer watching; trigger {id} is cancelled", "`stoker trigger cancel --force {id}`"),
        ),
    ],
)
def test_ctrl_c_says_what_continues(site, spawn, words, more, messages):
    pause = Wait()
    id_ = TriggerStory(site, target(0, "IN_PROGRESS", state="RUNNING"), pause).id
    process = spawn("-m", "stoker_client.cli.main", *words, id_, *more)
    read_until(process, "db1  RUNNING")
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)
    pause.go.set()

    assert process.returncode == 130
    for message in messages:
        assert message.format(id=id_) in err
    assert "Traceback" not in err


def test_a_table_is_drawn_on_a_terminal(site):
    pause = Wait()
    story = TriggerStory(
        site,
        target(0, "IN_PROGRESS", state="RUNNING", percent=50.0, message="dumping"),
        target(1, "FAILED", "it broke", status_code=4, output_values={"deploy_stderr": "no room\n"}),
        trigger("IN_PROGRESS", running=1, failed=1, queued=0),
        pause,
        target(0, "COMPLETE"),
        trigger("FAILED", running=0, failed=1, complete=1),
        END,
    )
    with on_terminal(*FOLLOW, story.id) as screen:
        assert pause.reached.wait(60)
        screen.read_until(b"dumping")
        pause.go.set()
        shown = screen.read_all()

    assert screen.process.returncode == 4
    assert "━" in shown
    assert "50 %" in shown
    assert "db2: exit 4: it broke: no room" in shown
    assert "0 of 2 complete, 1 failed, 1 running" in shown
    assert "database BACKUP is FAILED: 1 of 2 complete, 1 failed" in shown


# The table


def watching(*targets, **more) -> Watch:
    """A watch that knows ``targets``, without a service."""
    watch = Watch(None, "i")  # type: ignore[arg-type]  # no client is asked
    watch.trigger = {"id": "i", "name": "n", "status": "IN_PROGRESS", "total": len(targets), **more}
    for each in targets:
        watch.learn(each)
    return watch


def one(position: int, status: str, reason: str | None = None, name: str | None = None, **run):
    return {
        "position": position,
        "server_id": f"id{position}",
        "server_name": name or f"s{position}",
        "status": status,
        "status_reason": reason,
        "run": run or None,
    }


def test_the_table_shows_each_server(console):
    table = TriggerTable(console)
    watch = watching(
        one(0, "QUEUED"),
        one(1, "IN_PROGRESS", state="RUNNING", percent=25.0, message="a\x1b[2J\nb"),
        one(2, "FAILED", "it\nbroke", start_time="2031-05-06T07:08:09Z", end_time="2031-05-06T07:08:19Z"),
        one(3, "IN_PROGRESS", state="DELIVERED", name="s\x1b3"),
        running=2, queued=1, failed=1,
    )  # fmt: skip
    table.update(watch, watch.targets[2])
    table.add_output({"server_id": "id3", "seq": 1, "stream": "stdout", "data": "one\ntwo\n"})

    head, bar, *rows = [re.split(r"  +", line) for line in drawn(table, console)]

    assert head[:2] == ["n", "IN_PROGRESS"]
    assert bar[-1] == "1 of 4"
    assert rows[0] == ["s1", "RUNNING", "━━━━━", "25 %", "a\\x1b[2J b"]
    assert rows[1][:2] == ["s\\x1b3", "DELIVERED"]
    assert rows[1][-1] == "two"
    assert rows[2] == ["s2", "FAILED", "10.0 s", "it broke"]
    assert rows[3] == ["s0", "QUEUED"]
    assert rows[4] == ["0 of 4 complete, 1 failed, 2 running, 1 queued"]


def test_the_table_fits_the_screen(console):
    table = TriggerTable(console)
    watch = watching(*(one(n, "IN_PROGRESS", state="RUNNING", message="x" * 500) for n in range(1000)))
    table.update(watch, None)

    shown = drawn(table, console)

    assert len(shown) < console.height
    assert max(len(line) for line in shown) <= console.width
    assert shown[-1].endswith("; 985 more")


def test_running_servers_and_failures_are_listed_first():
    targets = [
        *(one(n, "QUEUED") for n in range(100)),
        *(one(n, "FAILED") for n in range(100, 200)),
        *(one(n, "COMPLETE") for n in range(200, 203)),
        *(one(n, "IN_PROGRESS") for n in range(300, 304)),
    ]

    assert [each["position"] for each in order(targets, 6)] == [300, 301, 302, 303, 100, 101]
    assert [each["position"] for each in order(targets, 1000)[104:108]] == [200, 201, 202, 0]


def test_the_duration_needs_both_times():
    begin, end = "2031-05-06T07:08:09Z", "2031-05-06T07:09:10Z"
    assert seconds_of({"start_time": begin, "end_time": end}) == 61
    for run in ({"start_time": begin, "end_time": None}, {}):
        assert seconds_of(run) is None
