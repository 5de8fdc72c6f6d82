"""The hook ``agent`` replaces the agent's program, and the agent returns to the old one if that fails."""

from __future__ import annotations

import hashlib
import json

import pytest

from agent.conftest import HOLD
from stoker_agent import self_update
from stoker_agent.config import Paths
from stoker_agent.self_update import RESTARTING, UpdateRecord, read_record, store_record
from stoker_agent.service_manager import ServiceManager
from support.agent_programs import build_agent

pytestmark = pytest.mark.slow
#: At the end of the module that polls Stoker: a new program without contact.
_BROKEN = "\nStoker.fetch = lambda *_: (_ for _ in ()).throw(Unreachable('broken'))\n"
_CRASH = "\nimport sys\nif sys.argv[1] == 'run': sys.exit(7)\n"


@pytest.fixture
def installed(agent, tmp_path):
    """The agent runs from a program file of version 0.0.1."""
    agent.file = agent.root / "stoker-agent.pyz"
    agent.root.mkdir(exist_ok=True)
    agent.file.write_bytes(build_agent(tmp_path / "old", "0.0.1", "hooks/agent.py", "\n_RETRY_SECONDS = 0.1\n"))
    agent.start(program=(str(agent.file),))
    return agent


def update(server, program: bytes, *others, seconds: float = 60.0) -> None:
    """List a run of the hook, for this program."""
    server.files["stoker-agent.pyz"] = program
    server.give(*others, server.entry("u1", {"contact_seconds": seconds}, group="agent"))


def shown_version(agent) -> str:
    return json.loads(agent.call("status", "--json", "--root", str(agent.root)).stdout)["version"]


def test_the_agent_becomes_the_served_program(installed, server, tmp_path):
    old, new = installed.file.read_bytes(), build_agent(tmp_path / "new", "0.0.2")
    server.files["stoker-agent.pyz"] = new
    server.give({**server.entry("p1", None, group="agent"), "mode": "preview"})
    assert server.result("p1")["deploy_changes"][0]["diff"] == "Stoker serves another program"
    assert installed.file.read_bytes() == old
    update(server, new)
    result = server.result("u1")
    assert (result["deploy_status_code"], result["deploy_changed"]) == (0, True)
    assert result["deploy_changes"] == [{"item": "stoker-agent", "outcome": "changed", "diff": "version 0.0.2"}]
    assert installed.file.read_bytes() == new
    assert shown_version(installed) == "0.0.2"
    assert installed.process.poll() is None  # the same process
    server.until(lambda: read_record(installed.root / "state").state == "COMPLETE")
    server.give(server.entry("c1", "#!/bin/sh\ntrue"), server.entry("u2", None, group="agent"))
    assert server.result("c1")["deploy_status_code"] == 0
    assert server.result("u2")["deploy_changed"] is False  # it is the served program
    server.until(lambda: len(installed.living()) == 1)  # the guard has ended


def test_the_update_waits_for_active_runs_and_later_runs_for_the_update(installed, server, tmp_path):
    server.head["concurrency"] = 4
    active = [server.entry(id, f"echo begun >>$WORK/begun; {HOLD}") for id in ("c1", "c2")]
    server.give(*active)
    server.until(lambda: len(installed.lines("begun")) == 2)
    update(server, build_agent(tmp_path / "new", "0.0.2"), *active)
    later, cancelled = server.entry("c3", "#!/bin/sh\ntrue"), {**server.entry("c4", "#!/bin/sh\ntrue"), "cancel": True}
    server.give(*server.deployments, later, cancelled)
    assert server.result("c4")["deploy_status_reason"] == "Cancelled before it began"
    assert [id for id, _ in server.signals] == ["c4"]
    installed.release()
    assert [server.result(id)["deploy_status_code"] for id in ("c1", "c2", "u1", "c3")] == [0, 0, 0, 0]
    assert [id for id, _ in server.signals][3:] == ["u1", "c3"]
    assert len(installed.lines("begun")) == 2  # none was interrupted and repeated


def test_an_update_continues_when_the_agent_runs_once(agent, server, tmp_path):
    program = agent.root / "stoker-agent.pyz"
    agent.root.mkdir(exist_ok=True)
    program.write_bytes(build_agent(tmp_path / "old", "0.0.1"))
    new = build_agent(tmp_path / "new", "0.0.2")
    server.etags["stoker-agent.pyz"] = f'W/"{hashlib.sha256(new).hexdigest()}"'  # a proxy compresses the answers
    update(server, new)
    agent.start(program=(str(program),), command="run-once")
    assert server.result("u1")["deploy_changed"] is True
    assert agent.process.wait(60) == 0


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_restart_restores_the_old_program_if_the_agent_was_stopped(tmp_path, monkeypatch, is_stopped):
    program, previous = tmp_path / "agent.pyz", tmp_path / "agent.pyz.old"
    program.write_text("new")
    previous.write_text("old")
    paths = Paths.of(str(tmp_path / "root"))
    paths.make()
    store_record(paths.state, UpdateRecord("u", RESTARTING, "0" * 64, str(program), str(previous), 60.0, 0.0))
    executed = []
    monkeypatch.setattr(self_update, "_start_guard", lambda *_: None)
    monkeypatch.setattr("os.execv", lambda _, argv: executed.append(argv[1]))
    self_update.restart(paths, ServiceManager(), lambda: is_stopped)
    assert (program.read_text(), executed) == (("old", []) if is_stopped else ("new", [str(program)]))
    assert (read_record(paths.state) is None) is is_stopped


def test_an_update_that_was_interrupted_before_the_replacement_begins_again(installed, server, tmp_path):
    """As after a loss of power between the record of the replacement and the replacement."""
    program, new = installed.file, build_agent(tmp_path / "new", "0.0.2")
    server.until(lambda: server.polls)
    installed.end()
    record = UpdateRecord("u1", RESTARTING, "0" * 64, str(program), f"{program}.old", 60.0, 0.0)
    store_record(installed.root / "state", record)
    update(server, new)
    installed.start(program=(str(program),))
    assert server.result("u1")["deploy_changed"] is True
    assert program.read_bytes() == new


@pytest.mark.parametrize(
    ("module", "text", "seconds", "reason"),
    [
        # a busy machine needs seconds to start the new program, which then fails to poll
        ("transports/stoker.py", _BROKEN, 20.0, "the new program had no contact with Stoker within 20 s: broken"),
        ("poll.py", _CRASH, 5.0, "the new program had no contact with Stoker within 5 s"),
    ],
    ids=["no contact", "it ends at once"],
)
def test_a_program_without_contact_is_replaced_by_the_old_one(
    installed, server, tmp_path, module, text, seconds, reason
):
    old = installed.file.read_bytes()
    server.until(lambda: server.polls)
    update(server, build_agent(tmp_path / "new", "0.0.3", module, text), seconds=seconds)
    assert server.result("u1")["deploy_status_reason"].startswith(reason)
    assert installed.file.read_bytes() == old
    assert shown_version(installed) == "0.0.1"
    assert installed.run(server.entry("c1", "#!/bin/sh\ntrue"))["deploy_status_code"] == 0


@pytest.mark.parametrize(
    ("module", "text", "etag", "reason"),
    [
        ("hooks/script.py", "\nimport nothing_of_that_name\n", "", "the new program fails its self-test"),
        ("", "", '"0"', "cannot download the program: its SHA-256 is not its ETag"),
    ],
)
def test_a_bad_program_is_never_installed(installed, server, tmp_path, module, text, etag, reason):
    old = installed.file.read_bytes()
    server.etags["stoker-agent.pyz"] = etag
    update(server, build_agent(tmp_path / "new", "0.0.5", module, text))
    assert server.result("u1")["deploy_status_reason"] == reason
    assert installed.file.read_bytes() == old
    assert installed.run(server.entry("c1", "#!/bin/sh\ntrue"))["deploy_status_code"] == 0


def test_an_agent_that_runs_from_its_sources_and_a_bad_setting_are_refused(agent, server):
    for id, config, reason in (
        ("u1", None, "this agent does not run from a program file, so it cannot replace itself"),
        ("u2", {"contact_seconds": "soon"}, "contact_seconds must be a number of seconds, not 'soon'"),
    ):
        assert agent.run(server.entry(id, config, group="agent"))["deploy_status_reason"] == reason
