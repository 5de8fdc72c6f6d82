"""Watching a stack: what is shown on the way, and what is told at the end."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from client.little_heat import SOURCE, Frame, resource
from stoker_client import watch
from stoker_client.cli._live import Clock, LastOutput, LiveStack, last_line
from stoker_client.shapes import Event
from stoker_client.stacks import Operation
from stoker_client.watch import Snapshot, read_events

TEMPLATE = "heat_template_version: 2021-04-16\n"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """The stack is read again almost at once."""
    monkeypatch.setattr(watch, "FIRST", 0.01)
    monkeypatch.setattr(watch, "USUAL", 0.01)
    monkeypatch.setattr(watch, "SHARE", 0)


@pytest.fixture
def create(stoker, nowhere):
    (nowhere / "web.yaml").write_text(TEMPLATE)
    return lambda *more: stoker("stack", "create", "web", "-t", "web.yaml", "--wait", *more)


EXIT_3 = (
    "Error: resources.db: Deployment to server failed: "
    "deploy_status_code : Deployment exited with non-zero status code: 3 on web1: no space left"
)


def deployment(heat, stderr: str) -> str:
    config = heat.create_config({"name": "c", "group": "script"})["software_config"]
    made = heat.create_deployment({"config_id": config["id"], "server_id": "s"})["software_deployment"]
    made["output_values"] = {"deploy_stderr": stderr, "deploy_status_code": 3}
    return made["id"]


def test_success_prints_each_change_and_the_outputs(heat, create):
    heat.life = [
        Frame("CREATE_IN_PROGRESS", "started", [resource("a", "INIT_COMPLETE")]),
        Frame("CREATE_IN_PROGRESS", "started", [resource("a", "CREATE_IN_PROGRESS", "state changed")]),
        Frame("CREATE_COMPLETE", "all done", [resource("a", "CREATE_COMPLETE")]),
    ]
    heat.outputs = [{"output_key": "url", "output_value": "http://x"}]

    result = create()

    assert result.code == 0
    told = [line.split(maxsplit=2)[2].split(maxsplit=1) for line in result.err.splitlines()]
    assert told == [
        ["web", "CREATE_IN_PROGRESS  started"],
        ["a", "CREATE_IN_PROGRESS"],
        ["a", "CREATE_COMPLETE"],
        ["web", "CREATE_COMPLETE  all done"],
    ]
    assert result.out.splitlines()[1].split() == ["url", "http://x"]


def test_json_on_stdout_stays_json(heat, create):
    heat.life = [Frame("CREATE_IN_PROGRESS"), Frame("CREATE_COMPLETE")]

    assert json.loads(create("-o", "json").out)["stack_status"] == "CREATE_COMPLETE"


def test_a_failure_prints_the_server_and_the_last_line_of_stderr(heat, create):
    heat.life = [
        Frame("CREATE_IN_PROGRESS", "", [resource("db", "CREATE_IN_PROGRESS")]),
        Frame("CREATE_FAILED", "Resource CREATE failed", [resource("db", "CREATE_FAILED", EXIT_3)]),
    ]

    result = create()

    assert result.code == 1
    assert result.out == ""
    assert result.err.splitlines()[-2:] == [
        "db: exit 3 on web1: no space left",
        "stoker: web is CREATE_FAILED: see `stoker deployment logs web/db`",
    ]


def test_a_failure_in_a_nested_stack_has_its_path(heat, create):
    heat.life = [
        Frame("CREATE_FAILED", "x", [resource("app", "CREATE_FAILED", EXIT_3.replace("db", "app.resources.db"))])
    ]

    assert create().err.splitlines()[-2:] == [
        "app/db: exit 3 on web1: no space left",
        "stoker: web is CREATE_FAILED: see `stoker deployment logs web/app/db`",
    ]


def test_a_rollback_does_not_hide_the_failure(heat, create, stoker):
    heat.life = [
        Frame("CREATE_IN_PROGRESS", "", [resource("db", "CREATE_FAILED", EXIT_3)]),
        Frame("ROLLBACK_IN_PROGRESS", "", []),
        Frame("ROLLBACK_COMPLETE", "undone", []),
    ]

    result = create("--rollback")

    assert result.code == 1
    assert result.err.splitlines()[-2:] == [
        "db: exit 3 on web1: no space left",
        "stoker: web is ROLLBACK_COMPLETE",
    ]
    assert "db: exit 3 on web1: no space left" in stoker("stack", "show", "web").out


def test_waiting_for_a_deletion_ends_when_the_stack_is_not_found(heat, stoker):
    stack = heat.add_stack("web")
    heat.life = [Frame("DELETE_COMPLETE")]

    result = stoker("stack", "delete", stack["id"], "--yes", "--wait")

    assert (result.code, heat.stacks) == (0, {})


def test_a_failed_deletion_exits_with_1(heat, stoker):
    heat.add_stack("web")
    heat.life = [Frame("DELETE_IN_PROGRESS"), Frame("DELETE_FAILED", "still in use")]

    result = stoker("stack", "delete", "web", "--yes", "--wait")

    assert result.code == 1
    assert result.err.splitlines()[-1] == "stoker: web is DELETE_FAILED: still in use"


@pytest.mark.slow
def test_ctrl_c_says_that_the_operation_continues(heat, spawn, nowhere):
    (nowhere / "web.yaml").write_text(TEMPLATE)
    heat.life = [Frame("CREATE_IN_PROGRESS")]
    process = spawn("-m", "stoker_client.cli.main", "stack", "create", "web", "-t", "web.yaml", "--wait")
    while not any("/events" in path for _, path in heat.calls):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "web continues" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_list_is_drawn_on_a_terminal(heat, nowhere):
    (nowhere / "web.yaml").write_text(TEMPLATE)
    busy = resource("db", "CREATE_IN_PROGRESS", deployment={"last_log": "installing"})
    heat.life = [
        *[Frame("CREATE_IN_PROGRESS", "", [busy])] * 8,
        Frame("CREATE_COMPLETE", "", [resource("db", "CREATE_COMPLETE")]),
    ]
    master, slave = os.openpty()
    args = [sys.executable, "-m", "stoker_client.cli.main", "stack", "create", "web", "-t", "web.yaml", "--wait"]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm"}
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, env=env) as process:
        os.close(slave)
        screen = everything(master)
        assert process.stdout is not None
        out = process.stdout.read().decode()

    assert process.returncode == 0
    assert re.search(r"▶ db  .* installing", screen)
    assert "0 of 1" in screen
    assert "\x1b[1A" in screen
    assert "CREATE_COMPLETE" in out


def everything(master: int) -> str:
    """What a terminal is shown until its program closes it."""
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:  # how Linux says that the other side is closed
        pass
    finally:
        os.close(master)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())


# The live view


def snapshot(status: str, *resources, name: str = "web") -> Snapshot:
    return Snapshot(f"{name}/i", status, resources=resources)


def drawn(tree: LiveStack, console: Console) -> list[str]:
    with console.capture() as capture:
        console.print(tree.render())
    return capture.get().splitlines()


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=60, height=24)


def test_the_view_shows_what_failed_and_what_runs_with_a_bar(console):
    view = LiveStack(console, lambda resource: f"{resource['resource_name']} says\x1b[2J hello")
    rows = (
        resource("done", "CREATE_COMPLETE"),
        resource("busy", "CREATE_IN_PROGRESS"),
        resource("bad", "CREATE_FAILED", "it\nbroke"),
        resource("later", "INIT_COMPLETE"),
    )
    view.update(snapshot("CREATE_IN_PROGRESS", *rows))

    head, bar, *shown, rest = [" ".join(line.split()) for line in drawn(view, console)]

    assert re.fullmatch(r"web CREATE_IN_PROGRESS( 0\.\d s)?", head)
    assert bar.endswith("1 of 4")
    assert re.fullmatch(r"✗ bad it broke", shown[0])
    assert re.fullmatch(r"▶ busy (0\.\d s )?busy says\\x1b\[2J hello", shown[1])
    assert rest == "1 complete, 1 waiting"

    view.update(snapshot("CREATE_FAILED", *rows[:1], *rows[2:]))

    assert [" ".join(line.split()[:2]) for line in drawn(view, console)] == ["web CREATE_FAILED", "✗ bad"]


def test_deleted_resources_count_as_done(console):
    view = LiveStack(console, lambda _: "")
    view.update(snapshot("DELETE_IN_PROGRESS", *(resource(name, "CREATE_COMPLETE") for name in "abc")))
    view.update(snapshot("DELETE_IN_PROGRESS", resource("a", "DELETE_IN_PROGRESS")))

    assert drawn(view, console)[1].split()[-3:] == ["2", "of", "3"]


def test_an_update_has_no_bar(console):
    view = LiveStack(console, lambda _: "")
    view.update(snapshot("UPDATE_IN_PROGRESS", resource("a", "CREATE_COMPLETE")))

    assert [line.split()[:2] for line in drawn(view, console)] == [["web", "UPDATE_IN_PROGRESS"], ["1", "complete"]]


def test_the_view_fits_the_screen(console):
    view = LiveStack(console, lambda _: "x" * 500)
    running = [resource(f"r{i}", "CREATE_IN_PROGRESS") for i in range(500)]
    view.update(snapshot("CREATE_IN_PROGRESS", *running))

    lines = drawn(view, console)

    assert len(lines) < console.height
    assert lines[-1].startswith("481 more")


def test_nothing_is_drawn_before_the_first_snapshot(console):
    assert drawn(LiveStack(console, lambda _: ""), console) in ([], [""])


def test_the_duration_grows_only_while_in_progress():
    now = [0.0]
    clock = Clock(lambda: now[0])
    times = []
    for moment, status in [(0, "CREATE_IN_PROGRESS"), (2, "CREATE_IN_PROGRESS"), (5, "CREATE_COMPLETE"), (9, None)]:
        now[0] = moment
        if status:
            clock.see("a", status)
        times.append(clock.elapsed("a"))

    assert times == [0, 2, 5, 5]


def test_the_duration_excludes_waiting_for_other_resources():
    now = [0.0]
    clock = Clock(lambda: now[0])
    clock.see("a", "INIT_COMPLETE")
    now[0] = 10
    clock.see("a", "CREATE_COMPLETE")

    assert clock.elapsed("a") == 0


def test_the_duration_restarts_with_the_next_action():
    now = [0.0]
    clock = Clock(lambda: now[0])
    clock.see("a", "CREATE_COMPLETE")
    now[0] = 10
    clock.see("a", "UPDATE_IN_PROGRESS")
    now[0] = 12
    clock.see("a", "UPDATE_COMPLETE")
    now[0] = 20

    assert clock.elapsed("a") == 2


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"last_log": "one\ntwo\n\n"}, "two"),
        ({"last_log": "half", "status_reason": "Running"}, "half"),
        ({"last_log": "\n", "status_reason": "Running"}, "Running"),
        ({"status_reason": "Waiting for the agent", "last_log": None}, "Waiting for the agent"),
        ({}, ""),
    ],
)
def test_the_last_output_is_read_from_the_resource(client, heat, told, words):
    assert LastOutput(client.deployments)(resource("a", "CREATE_IN_PROGRESS", deployment=told)) == words
    assert heat.calls == []


def test_without_last_output_in_the_resource_the_log_is_read(client, heat):
    heat.script.pages = [[("stdout", "one\ntwo\n")], [("stderr", "\n")], [("stdout", "three")]]
    busy = resource("a", "CREATE_IN_PROGRESS", physical_resource_id=deployment(heat, ""))
    words = LastOutput(client.deployments)

    assert [words(busy) for _ in range(4)] == ["two", "two", "three", "three"]


def test_a_service_without_logs_is_requested_once(client, heat):
    busy = resource("a", "CREATE_IN_PROGRESS", physical_resource_id="0" * 32)
    words = LastOutput(client.deployments)

    assert [words(busy), words(busy)] == ["", ""]
    assert sum("logs" in path for _, path in heat.calls) == 1


def test_last_line_ignores_blank_lines():
    assert last_line("") == last_line("\n \n") == ""
    assert last_line("a\n  b  \n\n") == "b"


# The events of an operation


def events(*statuses: str) -> list[Event]:
    """Events of the stack ``web/i``, and after a colon those of its resource ``d``."""
    return [
        Event(
            id=str(number),
            event_time="",
            resource_name="d" if status.startswith(":") else "web",
            resource_status=status.removeprefix(":"),
            physical_resource_id="x" if status.startswith(":") else "i",
        )
        for number, status in enumerate(statuses)
    ]


BEGIN, DONE = "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"
ROLLBACK = ("ROLLBACK_IN_PROGRESS", ":UPDATE_COMPLETE", "ROLLBACK_COMPLETE")


@pytest.mark.parametrize(
    ("statuses", "own", "status", "superseded_by"),
    [
        ((BEGIN,), 1, BEGIN, None),
        ((BEGIN, ":UPDATE_COMPLETE", DONE), 3, DONE, None),
        ((BEGIN, ":UPDATE_FAILED", "UPDATE_FAILED", *ROLLBACK), 6, "ROLLBACK_COMPLETE", None),
        ((BEGIN, *ROLLBACK), 4, "ROLLBACK_COMPLETE", None),
        ((BEGIN, BEGIN, DONE), 1, BEGIN, "UPDATE"),
        ((BEGIN, "DELETE_IN_PROGRESS", "DELETE_COMPLETE"), 1, BEGIN, "DELETE"),
        ((BEGIN, "ROLLBACK_IN_PROGRESS", BEGIN), 2, "ROLLBACK_IN_PROGRESS", "UPDATE"),
        ((BEGIN, DONE, BEGIN, "UPDATE_FAILED"), 2, DONE, None),
        ((), 0, "", None),
    ],
)
def test_the_events_of_an_operation_end_before_the_next_one(statuses, own, status, superseded_by):
    snapshot = read_events("web/i", events(*statuses))
    assert (len(snapshot.events), snapshot.status, snapshot.superseded_by) == (own, status, superseded_by)


def test_the_events_of_an_earlier_operation_are_not_read(heat, client):
    stack = heat.add_stack("web")
    own = [BEGIN, ":UPDATE_FAILED", "UPDATE_FAILED", *ROLLBACK]
    heat.events = events("CREATE_IN_PROGRESS", ":CREATE_FAILED", "CREATE_FAILED", *own, BEGIN, DONE)
    for event in heat.events:
        event["physical_resource_id"] = event["physical_resource_id"].replace("i", stack["id"])
    ref = f"web/{stack['id']}"

    for id_ in ("3", "6"):  # the service names the rollback if the update has failed at once
        found = client.stacks.operation_events(Operation(ref, id_))
        assert [event["id"] for event in found] == [str(number) for number in range(3, 11)]
    assert [event["id"] for event in client.stacks.operation_events(Operation(ref))] == ["9", "10"]
