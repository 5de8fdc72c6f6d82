"""The agent replaces itself by the offered program, and returns to the old one if that fails."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from support.agent_programs import build_agent

pytestmark = pytest.mark.slow
#: In place of the module that polls Stoker: a new program without contact.
_BROKEN = "\nStoker.fetch = lambda *_: (_ for _ in ()).throw(Unreachable('broken'))\n"


def offer(program: bytes, version: str, seconds: float = 60, key: str = "s1.secret") -> dict[str, object]:
    """Return the member ``agent`` of a document."""
    content = {"id": f"update-{version}", "version": version, "sha256": hashlib.sha256(program).hexdigest()}
    content |= {"seconds": seconds}
    text = json.dumps({**content, "server_id": "s1"}, sort_keys=True, separators=(",", ":"))
    derived = hmac.digest(key.encode(), b"stoker agent programs", hashlib.sha256)
    return {**content, "signature": hmac.new(derived, text.encode(), hashlib.sha256).hexdigest()}


@pytest.fixture
def installed(agent, tmp_path):
    """The agent runs from a program file of version 0.0.1."""
    agent.program = agent.root / "stoker-agent.pyz"
    agent.root.mkdir(exist_ok=True)
    agent.program.write_bytes(build_agent(tmp_path / "old", "0.0.1"))
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


def test_a_program_without_contact_is_replaced_by_the_old_one(installed, server, tmp_path):
    old = installed.program.read_bytes()
    server.give()
    server.until(lambda: server.polls)
    propose(server, build_agent(tmp_path / "new", "0.0.3", "sources/stoker.py", _BROKEN), "0.0.3", seconds=5)
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
    ("module", "text", "how", "reason"),
    [
        ("hooks/script.py", "\nimport nothing_of_that_name\n", {}, "the new program fails its self-test"),
        ("", "", {"key": "s1.other"}, "not signed with this server's key"),
    ],
)
def test_a_bad_program_is_never_installed(installed, server, tmp_path, module, text, how, reason):
    old = installed.program.read_bytes()
    server.give()
    server.until(lambda: server.polls)
    propose(server, build_agent(tmp_path / "new", "0.0.5", module, text), "0.0.5", **how)
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
