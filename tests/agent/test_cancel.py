"""Runs that are not wanted any more: ended, cleaned up after, reported; or never begun."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from agent.conftest import KEY, Server
from stoker.servers.keys import sign
from stoker_agent.execute import Execution
from stoker_agent.termination import CANCELLED, Control, grace, was_stopping
from support.waiting import until

pytestmark = pytest.mark.slow

#: Says that it is there, with its process and one of its children, and does not end by itself.
LASTING = "echo begun; sleep 1000 & echo $! >>$WORK/pids; echo $$ >>$WORK/pids; wait\n"
DEAF = "trap '' TERM\n" + LASTING
CLEANUP = "echo cleaned $who; echo err >&2; echo done >>$WORK/cleaned"
#: A time after which no test ends a process: a busy machine may take longer than the usual one to end one by TERM.
NEVER = 1000


def entry(server, script, id="c1", **options):
    return server.entry(id, script, who="me", options={"cancel_grace": NEVER, **options})


def begun(server, agent, *entries):
    """Give these entries, the first a LASTING script, and return its processes when it has begun."""
    agent.begin(*entries)
    server.until(lambda: len(agent.lines("pids")) >= 2)
    return {int(each) for each in agent.lines("pids")}


@pytest.mark.parametrize(
    ("script", "options", "reason", "code"),
    [
        (DEAF, {"cancel_grace": 0.5}, r"Cancelled: had to be killed after 0\.5 s", 137),
        # its own process group
        (f"timeout 1000 sh -c '{LASTING.strip()}'\n", {}, "Cancelled: ended by TERM after .* s", 143),
        (LASTING, {"on_cancel": CLEANUP}, "Cancelled: ended by TERM after .* s", 143),
        (LASTING, {"on_cancel": "exit 7"}, ".*; on_cancel ended with 7", 143),
        (LASTING, {"on_cancel": {"odd": 1}}, ".*; on_cancel could not be run: .*", 143),
    ],
    ids=["deaf", "process group", "on_cancel", "on_cancel fails", "on_cancel is no text"],
)
def test_no_process_of_a_cancelled_run_is_left_and_its_reason_says_how_it_ended(
    server, agent, script, options, reason, code
):
    left = begun(server, agent, entry(server, script, **options))
    server.change(cancel=True)
    values = server.result("c1")
    assert not left & set(agent.living())
    assert re.fullmatch(reason, values["deploy_status_reason"])
    assert values["deploy_status_code"] == code


def test_a_run_that_ended_before_the_cancellation_reports_its_result(server, agent):
    server.released["signal"].clear()
    agent.begin(entry(server, "echo done", on_cancel=CLEANUP))
    server.until(agent.run_folder("c1").joinpath("result.json").exists)
    server.change(cancel=True)
    server.released["signal"].set()
    values = server.result("c1")
    assert values.pop("deploy_run_seconds") >= 0
    assert values == {"deploy_stdout": "done\n", "deploy_stderr": "", "deploy_status_code": 0}
    agent.run(server.entry("c2", "true"))
    assert len(server.results("c1")) == 1
    assert agent.lines("cleaned") == []


@pytest.mark.parametrize("code", [0, 3])
def test_a_script_that_ends_by_itself_while_it_is_cancelled_reports_its_own_code(tmp_path, monkeypatch, code):
    """The agent records the cancellation on disk before it sends a signal; the script ends meanwhile."""
    folder = tmp_path / "runs" / "c1"
    folder.mkdir(parents=True)
    control = Control()

    def write(path, data):
        path.write_bytes(data)
        go.touch()
        status = Path("/proc", pid.read_text().strip(), "stat")
        until(lambda: not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z")

    monkeypatch.setattr("stoker_agent.execute.write", write)
    go, pid = tmp_path / "go", tmp_path / "pid"
    script = f"echo $$ >{pid}.new; mv {pid}.new {pid}; until test -e {go}; do sleep 0.02; done; exit {code}"
    cancel = threading.Thread(target=lambda: (until(pid.exists), control.stop(CANCELLED)))
    cancel.start()
    entry = Server.entry("c1", script, options={"on_cancel": f"touch {tmp_path}/cleaned"})
    values = Execution(entry, tmp_path / "variables", folder, control).execute(tmp_path)
    cancel.join()
    assert values == {"deploy_status_code": code, "deploy_stdout": "", "deploy_stderr": ""}
    assert not tmp_path.joinpath("cleaned").exists()
    assert was_stopping(folder) is None


def test_a_queued_run_is_cancelled_at_once_and_a_withdrawn_one_makes_room_for_the_next(server, agent):
    first, second = entry(server, LASTING, on_cancel=CLEANUP), entry(server, LASTING, id="c2")
    left = begun(server, agent, first, second)
    server.give(first, {**second, "cancel": True})
    assert server.result("c2")["deploy_status_reason"] == "Cancelled before it began"
    assert server.results("c1") == []
    assert len(agent.lines("pids")) == 2
    assert agent.run(server.entry("c3", "cat $WORK/cleaned"))["deploy_stdout"] == "done\n"
    assert not left & set(agent.living())
    assert server.result("c1")["deploy_status_reason"].startswith("Withdrawn: ended by TERM after ")


@pytest.mark.parametrize(
    "same",
    [{"deployment_id": "d-1"}, {"deploy_stack_id": "stack/1", "deploy_resource_name": "d"}],
    ids=["deployment", "resource of a replaced deployment"],
)
def test_the_next_run_of_a_deployment_waits_for_the_end_of_the_one_that_is_stopped(server, agent, same):
    id = {name: value for name, value in same.items() if name == "deployment_id"}
    resource = {name: value for name, value in same.items() if name != "deployment_id"}
    server.head["concurrency"] = 3
    options = {"on_cancel": CLEANUP, "cancel_grace": 0.3}
    begun(server, agent, {**server.entry("c1", DEAF, options=options, **resource), **id})
    server.give({**server.entry("c2", "cat $WORK/cleaned", **resource), **id}, server.entry("c3", "true"))
    assert server.result("c2")["deploy_stdout"] == "done\n"


def test_an_agent_killed_during_a_cancellation_continues_it_after_its_restart(server, agent):
    left = begun(server, agent, entry(server, DEAF, on_cancel=CLEANUP))
    server.change(cancel=True)
    server.until(agent.run_folder("c1").joinpath("stopping").exists)
    agent.kill()
    assert left & set(agent.living())
    agent.start()
    values = server.result("c1")
    assert (values["deploy_status_reason"], values["deploy_status_code"]) == ("Cancelled: had to be killed", 137)
    assert not left & set(agent.living())
    assert agent.lines("cleaned") == ["done"]
    assert (values["deploy_stdout"], values["deploy_stderr"]) == ("begun\ncleaned me\n", "err\n")


def test_an_agent_killed_in_the_cancel_command_repeats_the_command(server, agent):
    script = "echo try >>$WORK/cleaned; test -e $WORK/again && exit 0; sleep 1000"
    begun(server, agent, entry(server, LASTING, on_cancel=script))
    server.change(cancel=True)
    server.until(lambda: agent.lines("cleaned"))
    agent.kill()
    agent.work.joinpath("again").touch()
    agent.start()
    assert server.result("c1")["deploy_status_reason"] == "Cancelled: had to be killed"
    assert agent.lines("cleaned") == ["try", "try"]
    assert agent.living() == [agent.process.pid]


def test_a_document_of_another_source_withdraws_nothing(server, agent, other):
    def carry(revision, **more):
        """Put a document into the object for the agent, as Stoker does."""
        document = sign({"deployments": [], **more}, agent_key=KEY, server_id="s1", revision=revision)
        other.files["doc"] = json.dumps(document).encode()

    carry(1)
    config = agent.root / "sources.conf"
    config.write_text(f"[DEFAULT]\ncollectors = request\n[request]\nmetadata_url = {other.url}/doc\n")
    agent.words = ("--os-collect-config", str(config), "--polling-interval", "0.2")
    left = begun(server, agent, entry(server, LASTING + "echo over"))
    server.vanish()
    server.until(lambda: "documents come from request now" in agent.log)
    carry(2, other=1)
    server.come_back()
    server.until(lambda: "documents come from stoker now" in agent.log)
    assert left <= set(agent.living())
    server.change(cancel=True)
    assert server.result("c1")["deploy_status_code"] == 143


@pytest.mark.parametrize(
    ("said", "seconds"), [(None, 5), (0, 0), ("1.5", 1.5), (-1, 0), ("x", 5), ([], 5), (1e9, 3600), ("nan", 0)]
)
def test_any_grace_period_is_read_as_seconds_within_bounds(said, seconds):
    assert grace({"options": {} if said is None else {"cancel_grace": said}}) == seconds
    assert grace({"options": "odd"}) == grace({}) == 5
