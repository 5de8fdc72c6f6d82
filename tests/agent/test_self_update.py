"""The agent replaces itself by the offered program, and returns to the old one if that fails."""

from __future__ import annotations

import hashlib
import json
import threading

import pytest

from stoker_agent import self_update
from stoker_agent.config import Config, Paths
from stoker_agent.drain import Drain, Stopped
from stoker_agent.outbox import Outbox
from stoker_agent.self_update import RESTARTING, Updater, UpdateRecord, read_record, store_record
from stoker_agent.service_manager import ServiceManager
from support.agent_programs import build_agent

pytestmark = pytest.mark.slow
#: In place of the module that polls Stoker: a new program without contact.
_BROKEN = "\nStoker.fetch = lambda *_: (_ for _ in ()).throw(Unreachable('broken'))\n"


def offer(program: bytes, version: str, seconds: float = 60) -> dict[str, object]:
    """Return the member ``agent`` of a document."""
    digest = hashlib.sha256(program).hexdigest()
    return {"id": f"update-{version}", "version": version, "sha256": digest, "seconds": seconds}


@pytest.fixture
def installed(agent, tmp_path):
    """The agent runs from a program file of version 0.0.1."""
    agent.program = agent.root / "stoker-agent.pyz"
    agent.root.mkdir(exist_ok=True)
    agent.program.write_bytes(build_agent(tmp_path / "old", "0.0.1", "self_update.py", "\n_RETRY_SECONDS = 0.1\n"))
    agent.start(program=(str(agent.program),))
    return agent


def propose(server, program: bytes, version: str, **how) -> None:
    server.files["stoker-agent.pyz"] = program
    server.head["agent"] = offer(program, version, **how)
    server.give(*server.deployments)


def ends(server) -> list[tuple[str, str]]:
    return [(report["id"], report["status"]) for report in server.upgrades if report["status"] != "IN_PROGRESS"]


def shown_version(agent) -> str:
    return json.loads(agent.call("status", "--json", "--root", str(agent.root)).stdout)["version"]


def test_the_agent_becomes_the_offered_program(installed, server, tmp_path):
    server.give()
    server.until(lambda: server.polls)
    new = build_agent(tmp_path / "new", "0.0.2")
    propose(server, new, "0.0.2")
    server.until(lambda: ends(server) == [("update-0.0.2", "COMPLETE")])
    assert server.upgrades[0]["status"] == "IN_PROGRESS"  # sent by the new program's self-test
    assert installed.program.read_bytes() == new
    assert shown_version(installed) == "0.0.2"
    assert installed.process.poll() is None  # the same process
    server.head.clear()
    server.give(server.entry("c1", "#!/bin/sh\ntrue"))
    assert server.result("c1")["deploy_status_code"] == 0
    server.until(lambda: len(installed.living()) == 1)  # the guard has ended


def test_active_runs_end_before_the_restart_and_new_ones_begin_after_it(installed, server, tmp_path):
    wait = '#!/bin/sh\necho $1 >> "$WORK/begun"\nwhile [ ! -e "$WORK/go" ]; do sleep 0.05; done'
    server.give(server.entry("c1", wait), server.entry("c2", wait))
    server.until(lambda: installed.run_folder("c1").joinpath("entry.json").exists())
    propose(server, build_agent(tmp_path / "new", "0.0.2"), "0.0.2")
    server.until(lambda: server.upgrades)
    installed.work.joinpath("go").touch()
    assert [server.result(id)["deploy_status_code"] for id in ("c1", "c2")] == [0, 0]
    server.until(lambda: ends(server) == [("update-0.0.2", "COMPLETE")])
    assert len(installed.lines("begun")) == 2  # none was interrupted and repeated


def test_an_update_says_what_it_waits_for_and_cancelled_runs_do_not_wait_for_it(installed, server, tmp_path):
    wait = '#!/bin/sh\nwhile [ ! -e "$WORK/go" ]; do sleep 0.05; done'
    running, queued = server.entry("c1", wait), server.entry("c2", wait)
    server.give(running, queued)
    server.until(lambda: installed.run_folder("c1").joinpath("entry.json").exists())
    propose(server, build_agent(tmp_path / "new", "0.0.2"), "0.0.2")
    server.until(lambda: [each for each in server.upgrades if each["reason"] == "waits for 1 run"])
    server.give(running, {**queued, "cancel": True})
    assert server.result("c2")["deploy_status_reason"] == "Cancelled before it began"
    assert server.results("c1") == []
    installed.work.joinpath("go").touch()
    server.until(lambda: ends(server) == [("update-0.0.2", "COMPLETE")])


def test_sigterm_ends_an_agent_whose_update_waits_for_a_run(installed, server, tmp_path):
    old = installed.program.read_bytes()
    server.give(server.entry("c1", '#!/bin/sh\nwhile [ ! -e "$WORK/go" ]; do sleep 0.05; done'))
    server.until(lambda: installed.run_folder("c1").joinpath("entry.json").exists())
    propose(server, build_agent(tmp_path / "new", "0.0.2"), "0.0.2")
    server.until(lambda: [each for each in server.upgrades if each["reason"] == "waits for 1 run"])
    server.vanish()
    installed.process.terminate()
    installed.work.joinpath("go").touch()
    assert installed.process.wait(30) == 0
    assert installed.program.read_bytes() == old
    server.come_back()
    installed.start(program=(str(installed.program),))
    server.until(lambda: ends(server) == [("update-0.0.2", "COMPLETE")])


def test_sigterm_while_the_program_is_replaced_restores_the_old_one(tmp_path, monkeypatch):
    program, fresh = tmp_path / "agent.pyz", tmp_path / "agent.pyz.new"
    program.write_text("old")
    fresh.write_text("new")
    paths = Paths.of(str(tmp_path / "root"))
    paths.make()
    drain = Drain(threading.Condition(), {}, lambda: True)
    monkeypatch.setattr(self_update, "start_guard", lambda *_: drain.stop())
    config = Config("http://127.0.0.1:1", "s1", "s1.secret")
    updater = Updater(config, paths, ServiceManager(), drain, Outbox(None))
    record = UpdateRecord("u", RESTARTING, "0" * 64, str(program), str(tmp_path / "agent.pyz.old"))
    with pytest.raises(Stopped):
        updater._restart(record, fresh)
    assert program.read_text() == "old"
    assert read_record(paths.state).state == "FAILED"


def test_a_drain_has_a_limit(monkeypatch):
    monkeypatch.setattr("stoker_agent.drain.LONGEST_SECONDS", 0.0)
    monkeypatch.setattr("stoker_agent.drain._LOOK_SECONDS", 0.01)
    reasons = []
    with pytest.raises(TimeoutError, match="waits for 2 runs"):
        Drain(threading.Condition(), {"a": None, "b": None}, lambda: True).begin(reasons.append)
    assert reasons in ([], ["waits for 2 runs"])


def test_a_drain_waits_for_results_that_are_not_on_disk(monkeypatch):
    """The new program would not know them, and report their runs as interrupted."""
    monkeypatch.setattr("stoker_agent.drain._LOOK_SECONDS", 0.01)
    stored = threading.Event()
    reasons = []

    def report(reason):
        reasons.append(reason)
        stored.set()

    Drain(threading.Condition(), {}, stored.is_set).begin(report)
    assert reasons == ["waits for room on the disk for results"]


def test_an_update_that_was_interrupted_before_the_replacement_fails(agent, server, tmp_path):
    """As after a loss of power between the record of the restart and the replacement of the program."""
    program = agent.root / "stoker-agent.pyz"
    state = agent.root / "state"
    state.mkdir(parents=True)
    program.write_bytes(build_agent(tmp_path / "old", "0.0.1"))
    new = build_agent(tmp_path / "new", "0.0.2")
    record = UpdateRecord("update-0.0.2", RESTARTING, hashlib.sha256(new).hexdigest(), str(program), f"{program}.old")
    store_record(state, record)
    server.files["stoker-agent.pyz"] = new
    server.head["agent"] = offer(new, "0.0.2")
    server.give()
    agent.start(program=(str(program),))
    server.until(lambda: ends(server) == [("update-0.0.2", "FAILED")])
    report = server.upgrades[-1]
    assert "before its program was replaced" in report["reason"]
    assert report["sha256"] == hashlib.sha256(program.read_bytes()).hexdigest()


def test_a_program_without_contact_is_replaced_by_the_old_one(installed, server, tmp_path):
    old = installed.program.read_bytes()
    server.give()
    server.until(lambda: server.polls)
    propose(server, build_agent(tmp_path / "new", "0.0.3", "transports/stoker.py", _BROKEN), "0.0.3", seconds=5)
    server.until(lambda: ends(server) == [("update-0.0.3", "ROLLED_BACK")])
    assert "no contact with Stoker within 5 s: broken" in server.upgrades[-1]["reason"]
    assert installed.program.read_bytes() == old
    assert shown_version(installed) == "0.0.1"
    server.give(server.entry("c1", "#!/bin/sh\ntrue"))  # the offer is still there, and is not followed again
    assert server.result("c1")["deploy_status_code"] == 0


def test_a_program_that_ends_at_once_is_replaced_by_the_old_one(installed, server, tmp_path):
    server.give()
    server.until(lambda: server.polls)
    crash = "\nimport sys\nif sys.argv[1] == 'run': sys.exit(7)\n"
    propose(server, build_agent(tmp_path / "new", "0.0.4", "poll.py", crash), "0.0.4", seconds=3)
    server.until(lambda: ends(server) == [("update-0.0.4", "ROLLED_BACK")])
    assert shown_version(installed) == "0.0.1"


@pytest.mark.parametrize(
    ("module", "text", "added", "reason"),
    [
        ("hooks/script.py", "\nimport nothing_of_that_name\n", b"", "the new program fails its self-test"),
        ("", "", b"x", "cannot download the program: its digest is another one than the offer's"),
    ],
)
def test_a_bad_program_is_never_installed(installed, server, tmp_path, module, text, added, reason):
    old = installed.program.read_bytes()
    server.give()
    server.until(lambda: server.polls)
    new = build_agent(tmp_path / "new", "0.0.5", module, text)
    server.files["stoker-agent.pyz"] = new + added
    server.head["agent"] = offer(new, "0.0.5")
    server.give()
    server.until(lambda: ends(server) == [("update-0.0.5", "FAILED")])
    assert reason in server.upgrades[-1]["reason"]
    assert installed.program.read_bytes() == old
    server.give(server.entry("c1", "#!/bin/sh\ntrue"))
    assert server.result("c1")["deploy_status_code"] == 0


def test_an_agent_that_runs_from_its_sources_refuses(agent, server):
    server.give()
    agent.start()
    server.until(lambda: server.polls)
    propose(server, b"x", "0.0.6")
    server.until(lambda: ends(server) == [("update-0.0.6", "FAILED")])
    assert "does not run from a program file" in server.upgrades[-1]["reason"]
