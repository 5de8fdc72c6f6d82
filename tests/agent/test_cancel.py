"""Runs that are not wanted any more: ended, cleaned up after, reported; or never begun."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import pytest

from agent.conftest import Server
from stoker.servers.keys import sign
from stoker_agent.execute import Execution
from stoker_agent.termination import CANCELLED, Control, grace, was_stopping

pytestmark = pytest.mark.slow

#: Says that it is there, with its process and one of its children, and does not end by itself.
LASTING = "echo begun; sleep 1000 & echo $! >>$WORK/pids; echo $$ >>$WORK/pids; wait\n"
DEAF = "trap '' TERM\n" + LASTING
CLEANUP = "echo cleaned $who; echo err >&2; echo done >>$WORK/cleaned"


def entry(server, script, id="c1", **options):
    return {**server.entry(id, script, who="me"), "options": options}


def begun(server, agent, count=2):
    """The processes of a LASTING script, when it has begun."""
    server.until(lambda: len(agent.lines("pids")) >= count)
    return [int(each) for each in agent.lines("pids")]


def cancelled(server, agent, script=LASTING, **options):
    """The report of a run that was begun and then cancelled."""
    server.give(entry(server, script, **options))
    agent.start()
    left = begun(server, agent)
    server.until(lambda: server.progress)  # a run that ends before its first progress sends no output
    server.change(cancel=True)
    values = server.result("c1")
    assert not set(left) & set(agent.living())
    return values


def test_a_run_that_ignores_sigterm_is_killed_after_the_grace_period(server, agent):
    values = cancelled(server, agent, DEAF, cancel_grace=0.5)
    assert values["deploy_status_reason"] == "Cancelled: had to be killed after 0.5 s"
    assert values["deploy_status_code"] == 137


def test_a_child_in_its_own_process_group_is_ended_too(server, agent):
    """`timeout` does."""
    script = f"timeout 1000 sh -c '{LASTING.strip()}'\n"
    assert cancelled(server, agent, script)["deploy_status_reason"].startswith("Cancelled: ended by TERM after")


def test_a_cancelled_run_is_ended_cleaned_up_and_reported(server, agent):
    values = cancelled(server, agent, on_cancel=CLEANUP)
    assert re.fullmatch(r"Cancelled: ended by TERM after \d+(\.\d)? s", values["deploy_status_reason"])
    assert values["deploy_status_code"] == 143
    assert agent.lines("cleaned") == ["done"]
    assert values["deploy_stdout"] == "begun\ncleaned me\n"
    assert values["deploy_stderr"] == "err\n"
    server.give(entry(server, LASTING), server.entry("c2", "true"))
    server.result("c2")
    assert len(agent.lines("pids")) == 2


@pytest.mark.parametrize(
    ("text", "said"), [("exit 7", "; on_cancel ended with 7"), ({"odd": 1}, "; on_cancel could not be run: ")]
)
def test_a_failing_cancel_command_is_reported(server, agent, text, said):
    values = cancelled(server, agent, on_cancel=text)
    assert said in values["deploy_status_reason"]
    assert values["deploy_status_code"] == 143


def test_a_run_that_ended_before_the_cancellation_reports_its_result(server, agent):
    server.released["signal"].clear()
    server.give(entry(server, "echo done", on_cancel=CLEANUP))
    agent.start()
    server.until(lambda: agent.run_folder("c1").joinpath("result.json").exists())
    server.change(cancel=True)
    server.released["signal"].set()
    values = server.result("c1")
    assert values.pop("deploy_run_seconds") >= 0
    assert values == {"deploy_stdout": "done\n", "deploy_stderr": "", "deploy_status_code": 0}
    server.give(server.entry("c2", "true"))
    server.result("c2")
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
        tmp_path.joinpath("go").touch()
        pid = int(tmp_path.joinpath("pid").read_text())
        while _state(pid) not in ("Z", None):
            time.sleep(0.01)

    monkeypatch.setattr("stoker_agent.execute.write", write)
    go, pid = tmp_path / "go", tmp_path / "pid"
    script = f"echo $$ >{pid}.new; mv {pid}.new {pid}; until test -e {go}; do sleep 0.02; done; exit {code}"
    cancel = threading.Thread(target=lambda: (_await(pid.exists), control.stop(CANCELLED)))
    cancel.start()
    entry = {**Server.entry("c1", script), "options": {"on_cancel": f"touch {tmp_path}/cleaned"}}
    values = Execution(entry, tmp_path / "variables", folder, control).execute(tmp_path)
    cancel.join()
    assert values == {"deploy_status_code": code, "deploy_stdout": "", "deploy_stderr": ""}
    assert not tmp_path.joinpath("cleaned").exists()
    assert was_stopping(folder) is None


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def _await(condition):
    while not condition():
        time.sleep(0.01)


def test_a_queued_run_is_cancelled_at_once(server, agent):
    first, second = entry(server, LASTING), entry(server, LASTING, id="c2")
    server.give(first, second)
    agent.start()
    begun(server, agent)
    server.give(first, {**second, "cancel": True})
    assert server.result("c2")["deploy_status_reason"] == "Cancelled before it began"
    assert server.results("c1") == []
    assert len(agent.lines("pids")) == 2


def test_a_withdrawn_run_is_ended_and_the_next_one_begins(server, agent):
    server.give(entry(server, LASTING, on_cancel=CLEANUP))
    agent.start()
    left = begun(server, agent)
    server.give(server.entry("c2", "cat $WORK/cleaned"))
    assert server.result("c2")["deploy_stdout"] == "done\n"
    assert not set(left) & set(agent.living())
    assert server.result("c1")["deploy_status_reason"].startswith("Withdrawn: ended by TERM after ")


@pytest.mark.parametrize("same", ["deployment", "resource"])
def test_the_next_run_of_a_deployment_waits_for_the_end_of_the_one_that_is_stopped(server, agent, same):
    """A replaced deployment has another id, and the same resource."""
    resource = {"deploy_stack_id": "stack/1", "deploy_resource_name": "d"} if same == "resource" else {}
    ids = [{"deployment_id": "d-1"} if same == "deployment" else {}] * 2
    first, second = (
        {**server.entry(id, script, **resource), **more}
        for id, script, more in zip(("c1", "c2"), (DEAF, "cat $WORK/cleaned"), ids, strict=True)
    )
    server.head["concurrency"] = 3
    server.give({**first, "options": {"on_cancel": CLEANUP, "cancel_grace": 0.3}})
    agent.start()
    begun(server, agent)
    server.give(second, server.entry("c3", "true"))
    assert server.result("c2")["deploy_stdout"] == "done\n"


def test_an_agent_killed_during_a_cancellation_continues_it_after_its_restart(server, agent):
    server.give(entry(server, DEAF, on_cancel=CLEANUP, cancel_grace=1000))
    agent.start()
    left = begun(server, agent)
    server.change(cancel=True)
    server.until(lambda: agent.run_folder("c1").joinpath("stopping").exists())
    agent.kill()
    assert set(left) & set(agent.living())
    agent.start()
    values = server.result("c1")
    assert (values["deploy_status_reason"], values["deploy_status_code"]) == ("Cancelled: had to be killed", 137)
    assert not set(left) & set(agent.living())
    assert agent.lines("cleaned") == ["done"]
    assert values["deploy_stdout"] == "begun\ncleaned me\n"


def test_an_agent_killed_in_the_cancel_command_repeats_the_command(server, agent):
    script = "echo try >>$WORK/cleaned; test -e $WORK/again && exit 0; sleep 1000"
    server.give(entry(server, LASTING, on_cancel=script))
    agent.start()
    begun(server, agent)
    server.change(cancel=True)
    server.until(lambda: agent.lines("cleaned"))
    agent.kill()
    agent.work.joinpath("again").touch()
    agent.start()
    assert server.result("c1")["deploy_status_reason"] == "Cancelled: had to be killed"
    assert agent.lines("cleaned") == ["try", "try"]
    assert agent.living() == [agent.process.pid]


def carried(server, document, *, revision):
    """As Stoker puts it into an object for the agent."""
    (key,) = server.keys
    return json.dumps(sign(document, agent_key=key, server_id="s1", revision=revision)).encode()


def test_a_document_of_another_source_withdraws_nothing(server, agent, other):
    other.files["doc"] = carried(server, {"deployments": []}, revision=1)
    config = agent.root / "sources.conf"
    config.write_text(f"[DEFAULT]\ncollectors = request\n[request]\nmetadata_url = {other.url}/doc\n")
    server.give(entry(server, LASTING + "echo over"))
    agent.start("--os-collect-config", str(config), "--polling-interval", "0.2")
    left = begun(server, agent)
    server.vanish()
    server.until(lambda: "documents come from request now" in agent.log)
    other.files["doc"] = carried(server, {"deployments": [], "other": 1}, revision=2)
    server.come_back()
    server.until(lambda: "documents come from stoker now" in agent.log)
    assert set(left) <= set(agent.living())
    server.change(cancel=True)
    assert server.result("c1")["deploy_status_code"] == 143


@pytest.mark.parametrize(
    ("said", "seconds"), [(None, 5), (0, 0), ("1.5", 1.5), (-1, 0), ("x", 5), ([], 5), (1e9, 3600), ("nan", 0)]
)
def test_any_grace_period_is_read_as_seconds_within_bounds(said, seconds):
    assert grace({"options": {} if said is None else {"cancel_grace": said}}) == seconds
    assert grace({"options": "odd"}) == grace({}) == 5
