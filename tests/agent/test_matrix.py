"""Stoker's own agent over every transport: documents come by each, and results go back by each."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agents import OwnAgent, collect_config, own_agent
from support.backends import created, greetings, outputs, sections
from support.faulty_line import faulty_line
from support.server import Served, served

pytestmark = pytest.mark.slow

SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "NO_SIGNAL")
POLLED = {
    "POLL_SERVER_CFN": "cfn",
    "POLL_SERVER_HEAT": "heat",
    "POLL_TEMP_URL": "request",
    "ZAQAR_MESSAGE": "zaqar",
}
SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("matrix")) as running:
        yield running


def until(stoker: Served, stack: str, status: str, agent: OwnAgent) -> None:
    def settled() -> bool:
        return not stoker.heat("GET", stack).body["stack"]["stack_status"].endswith("IN_PROGRESS")

    stoker.until(settled, 60)
    assert stoker.heat("GET", stack).body["stack"]["stack_status"] == status, agent.log[-3000:]


def changed(stoker: Served, stack: str, said: dict) -> None:
    answer = stoker.heat("PUT", stack, {"template": said})
    assert answer.status == 202, answer.raw


@pytest.mark.parametrize("metadata", ["STOKER_PUSH", *POLLED])
def test_every_pair_of_transports_runs_a_config_once_and_returns_its_result(
    stoker: Served, tmp_path: Path, metadata: str
) -> None:
    names = {each.lower(): each for each in SIGNALS}
    name = f"matrix-{metadata.lower()}"
    with own_agent(tmp_path) as agent:
        if metadata == "STOKER_PUSH":
            names["stoker_signal"] = "STOKER_SIGNAL"
            agent.enroll(stoker, name)
        stack = created(stoker, name, greetings(metadata, names, machine=name, script=SCRIPT))
        if metadata != "STOKER_PUSH":
            told = sections(stoker, stack)
            assert list(told) == [POLLED[metadata]]
    with own_agent(tmp_path, None if metadata == "STOKER_PUSH" else told) as agent:
        agent.start()
        until(stoker, stack, "CREATE_COMPLETE", agent)
        stoker.until(lambda: len(agent.lines()) == len(names))
        answered = {each: each for each in names if each != "no_signal"}
        said = outputs(stoker, stack)
        assert {each: said[each] for each in answered} == answered
        # A second agent on the same disk, and another document: what has run stays run.
        agent.end()
        agent.start()
        changed(stoker, stack, greetings(metadata, {**names, "last": "CFN_SIGNAL"}, machine=name, script=SCRIPT))
        until(stoker, stack, "UPDATE_COMPLETE", agent)
    assert sorted(agent.lines()) == sorted([*names, "last"])
    assert not [secret for secret in secrets(agent) if secret in agent.log]


def secrets(agent: OwnAgent) -> list[str]:
    """What opens something, of all that this agent has been told."""
    files = [*agent.root.glob("state/runs/*/entry.json"), *agent.root.glob("etc/*.json")]
    found = [
        word
        for file in files
        for word in re.findall(
            r'[Pp]assword": "([^"]+)|secret_access_key": "([^"]+)|[?&]([^"]*sig[^"]+)', file.read_text()
        )
    ]
    flat = {each for words in found for each in words if each}
    assert flat
    return sorted(flat)


@pytest.mark.parametrize("transport", SIGNALS[:4])
def test_every_signal_transport_returns_a_failure(stoker: Served, tmp_path: Path, transport: str) -> None:
    script = "#!/bin/sh\necho sorry >&2\nexit 3\n"
    said = greetings("POLL_SERVER_CFN", {"bad": transport}, script=script)
    stack = created(stoker, f"matrix-failure-{transport.lower()}", said)
    with own_agent(tmp_path, sections(stoker, stack)) as agent:
        agent.start()
        until(stoker, stack, "CREATE_FAILED", agent)
    reason = stoker.heat("GET", stack).body["stack"]["stack_status_reason"]
    assert "Deployment exited with non-zero status code: 3" in reason


def test_the_agent_adopts_a_new_transport_from_the_document(stoker: Served, tmp_path: Path) -> None:
    name, names = "matrix-change", {"one": "CFN_SIGNAL"}
    stack = created(stoker, name, greetings("POLL_SERVER_CFN", names, script=SCRIPT))
    with own_agent(tmp_path, sections(stoker, stack)) as agent:
        agent.start()
        until(stoker, stack, "CREATE_COMPLETE", agent)
        for metadata, source in (
            ("POLL_TEMP_URL", "request"),
            ("ZAQAR_MESSAGE", "zaqar"),
            ("POLL_SERVER_HEAT", "heat"),
        ):
            names[source] = "HEAT_SIGNAL"
            changed(stoker, stack, greetings(metadata, names, script=SCRIPT))
            until(stoker, stack, "UPDATE_COMPLETE", agent)
            stoker.until(lambda source=source: agent.kept["order"] == ["stoker", source])
            assert list(agent.kept["sections"]) == [source]
        agent.end()
        agent.start()  # with the words and the file of its first start, which know of cfn only
        changed(stoker, stack, greetings("POLL_SERVER_HEAT", {**names, "last": "CFN_SIGNAL"}, script=SCRIPT))
        until(stoker, stack, "UPDATE_COMPLETE", agent)
        assert agent.lines() == ["one", "request", "zaqar", "heat", "last"]
        assert agent.root.joinpath("etc", "sources.json").stat().st_mode & 0o777 == 0o600


def test_a_killed_server_receives_every_result_after_its_restart(tmp_path: Path) -> None:
    hold = SCRIPT + 'until test -e "$WORK/go"; do sleep 0.05; done\n'
    names = {each.lower(): each for each in SIGNALS[:4]}
    with served(tmp_path) as stoker:
        stack = created(stoker, "killed", greetings("POLL_SERVER_HEAT", names, script=hold))
        with own_agent(tmp_path / "agent", sections(stoker, stack)) as agent:
            agent.start()
            stoker.until(lambda: len(agent.lines()) == 1)
            stoker.kill9()
            agent.work.joinpath("go").touch()
            stoker.until(lambda: agent.log.count("ended with 0") == len(names))
            agent.end(signal.SIGKILL)  # whatever has not gone out is on the disk
            agent.start()
            stoker.restart()
            until(stoker, stack, "CREATE_COMPLETE", agent)
            assert sorted(agent.lines()) == sorted(names)
            assert {each: outputs(stoker, stack)[each] for each in names} == {each: each for each in names}


def test_the_next_source_is_used_while_the_first_one_is_down(stoker: Served, tmp_path: Path) -> None:
    name, names = "matrix-fallback", {"one": "CFN_SIGNAL"}
    with own_agent(tmp_path) as agent, faulty_line(stoker.port) as first:
        agent.enroll(stoker, name, url=first.url)
        stack = created(stoker, name, greetings("POLL_SERVER_CFN", names, machine=name, script=SCRIPT))
        file = collect_config(tmp_path / "os-collect-config.conf", sections(stoker, stack))
        agent.start("--sources", "stoker,cfn", "--os-collect-config", str(file))
        until(stoker, stack, "CREATE_COMPLETE", agent)
        assert "come from" not in agent.log
        for turn, (move, source) in enumerate(((first.go, "cfn"), (first.come, "stoker"), (first.go, "cfn"))):
            move()
            stoker.until(lambda turn=turn, source=source: moves(agent)[turn:] == [source])
            names[f"more{turn}"] = "CFN_SIGNAL"
            changed(stoker, stack, greetings("POLL_SERVER_CFN", names, machine=name, script=SCRIPT))
            stoker.until(lambda turn=turn: f"more{turn}" in agent.lines())
        first.come()
        until(stoker, stack, "UPDATE_COMPLETE", agent)
    assert agent.lines() == list(names)


def moves(agent: OwnAgent) -> list[str]:
    return re.findall("documents come from (.*) now", agent.log)
