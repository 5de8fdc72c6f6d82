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
from stoker_client.cli._last_output import LastOutput, last_line
from stoker_client.cli._live import Clock, LiveTree
from stoker_client.shapes import Stack
from stoker_client.watch import Snapshot, changed_resources

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
    "deploy_status_code : Deployment exited with non-zero status code: 3"
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
        ["a", "INIT_COMPLETE"],
        ["web", "CREATE_IN_PROGRESS  started"],
        ["a", "CREATE_IN_PROGRESS  state changed"],
        ["a", "CREATE_COMPLETE"],
        ["web", "CREATE_COMPLETE  all done"],
    ]
    assert result.out.splitlines()[1].split() == ["url", "http://x"]


def test_json_on_stdout_stays_json(heat, create):
    heat.life = [Frame("CREATE_IN_PROGRESS"), Frame("CREATE_COMPLETE")]

    assert json.loads(create("-o", "json").out)["stack_status"] == "CREATE_COMPLETE"


def test_a_failure_prints_the_last_line_of_stderr(heat, create):
    failed = resource("db", "CREATE_FAILED", EXIT_3, physical_resource_id=deployment(heat, "no space left\n"))
    heat.life = [
        Frame("CREATE_IN_PROGRESS", "", [resource("db", "CREATE_IN_PROGRESS")]),
        Frame("CREATE_FAILED", "Resource CREATE failed", [failed]),
    ]

    result = create()

    assert result.code == 1
    assert result.out == ""
    assert result.err.splitlines()[-2:] == [
        "db on s: exit 3: no space left",
        "stoker: web is CREATE_FAILED: `stoker deployment logs web/db` shows all that was written",
    ]


def test_a_rollback_does_not_hide_the_failure(heat, create):
    failed = resource("db", "CREATE_FAILED", EXIT_3, physical_resource_id=deployment(heat, "no space left\n"))
    heat.life = [
        Frame("CREATE_IN_PROGRESS", "", []),
        Frame("ROLLBACK_IN_PROGRESS", "", [failed]),
        Frame("ROLLBACK_COMPLETE", "undone", []),
    ]

    result = create("--enable-rollback")

    assert result.code == 1
    assert result.err.splitlines()[-2:] == [
        "db on s: exit 3: no space left",
        "stoker: web is ROLLBACK_COMPLETE",
    ]


def test_an_earlier_failure_that_was_fixed_is_not_printed(heat, stoker, nowhere):
    (nowhere / "web.yaml").write_text(TEMPLATE)
    heat.add_stack("web")
    heat.life = [
        Frame("UPDATE_IN_PROGRESS", "", [resource("db", "CREATE_FAILED", "old"), resource("web", "INIT_COMPLETE")]),
        Frame("UPDATE_FAILED", "x", [resource("db", "UPDATE_COMPLETE"), resource("web", "CREATE_FAILED", "new")]),
    ]

    result = stoker("stack", "update", "web", "-t", "web.yaml", "--wait")

    assert result.err.splitlines()[-2:] == ["web: new", "stoker: web is UPDATE_FAILED"]


def test_the_reason_is_printed_although_the_deployment_is_deleted(heat, create):
    failed = resource("db", "CREATE_FAILED", EXIT_3, physical_resource_id="gone")
    heat.life = [Frame("CREATE_FAILED", "x", [failed])]

    assert create().err.splitlines()[-2:] == ["db: exit 3", "stoker: web is CREATE_FAILED"]


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
    while not any(path.endswith("/resources") for _, path in heat.calls):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "web continues" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_tree_is_drawn_on_a_terminal(heat, nowhere):
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
    assert "└── installing" in screen
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


# The tree


def snapshot(status: str, *resources, name: str = "web") -> Snapshot:
    return Snapshot(Stack(id="i", stack_name=name, stack_status=status), resources)


def drawn(tree: LiveTree, console: Console) -> list[str]:
    with console.capture() as capture:
        console.print(tree.render())
    return capture.get().splitlines()


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=60, height=24)


def test_the_tree_shows_state_duration_and_last_output(console):
    tree = LiveTree(console, lambda resource: f"{resource['resource_name']} says\x1b[2J hello")
    tree.update(
        snapshot(
            "CREATE_IN_PROGRESS",
            resource("done", "CREATE_COMPLETE"),
            resource("busy", "CREATE_IN_PROGRESS"),
            resource("bad", "CREATE_FAILED", "it\nbroke"),
        )
    )

    lines = drawn(tree, console)

    assert [line.rpartition("  ")[0].rstrip() if line.endswith(" s") else line.rstrip() for line in lines] == [
        "web  CREATE_IN_PROGRESS",
        "├── bad  CREATE_FAILED",
        "│   └── it broke",
        "├── busy  CREATE_IN_PROGRESS",
        "│   └── busy says\\x1b[2J hello",
        "└── done  CREATE_COMPLETE",
    ]


def test_the_tree_fits_the_screen(console):
    tree = LiveTree(console, lambda _: "x" * 500)
    running = [resource(f"r{i}", "CREATE_IN_PROGRESS") for i in range(500)]
    tree.update(snapshot("CREATE_IN_PROGRESS", *running))

    lines = drawn(tree, console)

    assert len(lines) < console.height
    assert "… and 490 more" in lines[-1]


def test_nothing_is_drawn_before_the_first_snapshot(console):
    assert drawn(LiveTree(console, lambda _: ""), console) in ([], [""])


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
    busy = resource("a", "CREATE_IN_PROGRESS", physical_resource_id="nope")
    words = LastOutput(client.deployments)

    assert [words(busy), words(busy)] == ["", ""]
    assert sum("logs" in path for _, path in heat.calls) == 1


def test_last_line_ignores_blank_lines():
    assert last_line("") == last_line("\n \n") == ""
    assert last_line("a\n  b  \n\n") == "b"


def test_only_changes_of_state_are_reported():
    before = snapshot("X", resource("a", "INIT_COMPLETE"), resource("b", "CREATE_IN_PROGRESS"))
    after = snapshot("X", resource("a", "CREATE_IN_PROGRESS"), resource("b", "CREATE_IN_PROGRESS", "other words"))

    assert [r["resource_name"] for r in changed_resources(before, after)] == ["a"]
    assert [r["resource_name"] for r in changed_resources(None, after)] == ["a", "b"]
