"""The agent's facts: what it sends, and when."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path

import pytest

from agent.conftest import shortened
from stoker_agent import facts_report
from stoker_agent.config import Config, Paths
from stoker_agent.disk import Disk
from stoker_agent.facts import collect, list_addresses, read_site_facts
from stoker_agent.facts_report import LARGEST, FactsReporter
from stoker_agent.outbox import Outbox
from stoker_agent.tools import list_versions, read_output
from stoker_agent.web import Channel
from support.waiting import until

#: An agent that collects its facts soon after a run.
SOON = shortened({"facts_report._LEAST_SECONDS": 0.1})


def put(folder: Path, name: str, text: str, *, mode: int = 0o644) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath(name).write_text(text)
    folder.joinpath(name).chmod(mode)


def test_the_facts_are_those_of_this_machine(tmp_path):
    facts = collect(tmp_path / "hooks", tmp_path / "facts.d", {"git": "2.1"})
    release = Path("/etc/os-release").read_text()
    assert f"ID={facts['os']['id']}\n" in release
    assert facts["kernel"] == os.uname().release
    assert facts["hostname"] == socket.gethostname()
    assert facts["cpus"] == len(os.sched_getaffinity(0))
    assert facts["tools"] == {"git": "2.1"}
    assert "script" in facts["hooks"]
    assert "custom" not in facts
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert abs(facts["memory_mb"] - pages // 2**20) <= 1


def test_addresses_are_those_that_the_kernel_has(tmp_path):
    names = {name for _, name in socket.if_nameindex()}
    networks = list_addresses()
    main = collect(tmp_path, tmp_path, {}).get("address")
    assert main is None or main in [address for addresses in networks.values() for address in addresses]
    assert set(networks) <= names - {"lo"}
    for address in (address for addresses in networks.values() for address in addresses):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.bind((address, 0))  # fails for an address of another machine


def test_site_facts_are_files_and_programs(tmp_path):
    put(tmp_path, "rack.json", '{"row": 4, "name": "a"}')
    put(tmp_path, "site.txt", "# where\nplace = vienna\n\nfloor=2\n")
    put(tmp_path, "load", '#!/bin/sh\necho "[1, 2]"\n', mode=0o755)
    put(tmp_path, ".hidden.json", "{}")
    assert read_site_facts(tmp_path) == {
        "rack": {"row": 4, "name": "a"},
        "site": {"place": "vienna", "floor": "2"},
        "load": [1, 2],
    }


def test_invalid_site_facts_are_left_out_and_logged(tmp_path, caplog):
    put(tmp_path, "good.json", "1")
    put(tmp_path, "bad.json", "{")
    put(tmp_path, "large.json", json.dumps("x" * 20_000))
    put(tmp_path, "fails", "#!/bin/sh\necho 1; exit 3\n", mode=0o755)
    put(tmp_path, "floods", "#!/bin/sh\nexec cat /dev/zero\n", mode=0o755)
    put(tmp_path, "binary.json", "")
    tmp_path.joinpath("binary.json").write_bytes(b"\xff\xfe")
    assert read_site_facts(tmp_path) == {"good": 1}
    logged = [record.getMessage() for record in caplog.records]
    assert sorted(Path(line.split()[1]).name for line in logged) == [
        *("bad.json", "binary.json", "fails", "floods", "large.json"),
    ]
    read_site_facts(tmp_path)
    assert len(caplog.records) == len(logged)  # each error once


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path):
    script, argument = tmp_path / "slow", f"600.{os.getpid()}"
    put(tmp_path, "slow", f"#!/bin/sh\nsleep {argument} &\nwait\n", mode=0o755)
    with pytest.raises(OSError, match="no end within"):
        read_output([str(script)], 1.0, 100)
    until(lambda: not _is_running(argument))


def _is_running(argument: str) -> bool:
    """Return whether a process has this argument."""
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if argument.encode() in arguments.read_bytes().split(b"\0"):
                return True
    return False


def test_a_version_is_read_once_until_its_program_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin:/bin")
    script = "#!/bin/sh\necho called >> %s/calls\necho 'puppet v%s (x)'\n"
    put(tmp_path, "puppet", script % (tmp_path, "7.23.0"), mode=0o755)
    tools = {}
    assert list_versions(tools, read=False)["puppet"] == ""
    assert list_versions(tools, read=True)["puppet"] == "7.23.0"
    restarted = json.loads(json.dumps(tools))
    assert list_versions(restarted, read=True)["puppet"] == "7.23.0"
    assert tmp_path.joinpath("calls").read_text() == "called\n"
    put(tmp_path, "puppet", script % (tmp_path, "8.10.0"), mode=0o755)
    assert list_versions(restarted, read=False)["puppet"] == ""
    assert list_versions(restarted, read=True)["puppet"] == "8.10.0"
    tmp_path.joinpath("puppet").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "puppet" not in list_versions(restarted, read=True)


class Facts:
    """The facts of an agent below ``folder``, and the outbox that sends them."""

    def __init__(self, folder: Path, server, id: str = "s1") -> None:
        self.paths = Paths.of(str(folder))
        self.paths.make()
        config = Config(server.url, id, "s1.secret")
        self._outbox = Outbox(Channel(config))
        self._outbox.start()
        disk = Disk(self.paths.state, self._outbox)
        self._reporter = FactsReporter(config, self.paths, self._outbox, {}, disk)

    def report(self) -> float:
        """Collect and send the facts. Return the seconds until the next time."""
        pause = self._reporter.report(read_versions=False)
        self._outbox.wait(60)
        return pause


@pytest.mark.slow
def test_facts_are_sent_at_the_start_and_when_a_run_has_changed_them(agent, server):
    site, state = agent.root / "etc" / "facts.d", agent.root / "state" / "facts.json"
    agent.start()
    server.until(lambda: server.facts)
    server.until(state.exists)
    agent.kill()
    server.answers["facts"] = [599]  # taken by any further report
    agent.run(server.entry("r1", "echo done"), program=SOON)
    # The report after the run follows the one at the start.
    before = state.stat().st_mtime_ns
    put(site, "rack.json", '{"row": 4}')
    agent.hook("other", "#!/bin/sh\n")
    assert server.answers.pop("facts") == [599]
    agent.run(server.entry("r2", f"echo 5 > {site}/row"))
    server.until(lambda: server.facts[-1].get("custom") == {"rack": {"row": 4}, "row": 5})
    assert "other" in server.facts[-1]["hooks"]
    server.until(lambda: state.stat().st_mtime_ns != before)


def test_refused_facts_are_not_sent_again_until_they_change_and_large_ones_without_those_of_the_site(tmp_path, server):
    reporter = Facts(tmp_path, server)
    server.answers["facts"] = [400, 400]
    reporter.report()
    assert reporter.report() > 3000
    assert server.answers["facts"] == [400]
    for number in (1, 2):
        put(reporter.paths.site_facts, "a.json", str(number))
        reporter.report()
    assert [facts["custom"] for facts in server.facts] == [{"a": 2}]
    put(reporter.paths.site_facts, "a.json", json.dumps(["x" * 12_000]))
    put(reporter.paths.site_facts, "b.json", json.dumps(["x" * 12_000]))
    put(reporter.paths.site_facts, "c.json", json.dumps(["x" * 12_000]))
    reporter.report()
    facts = server.facts[-1]
    assert ("custom" in facts, "os" in facts, len(json.dumps(facts)) < LARGEST) == (False, True, True)


def test_facts_are_sent_again_once_a_day_and_after_a_new_enrollment(tmp_path, server, monkeypatch):
    def report(id: str = "s1") -> int:
        Facts(tmp_path, server, id).report()
        return len(server.facts)

    assert [report(), report()] == [1, 1]
    assert [report("s2"), report("s2")] == [2, 2]
    tomorrow = time.time() + 90_000
    monkeypatch.setattr(facts_report.time, "time", lambda: tomorrow)
    assert [report("s2"), report("s2")] == [3, 3]
