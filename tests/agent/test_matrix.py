"""Stoker's own agent over every transport: documents come by each, and results go back by each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agents import OwnAgent, own_agent
from support.backends import greetings, sections
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
        stack = stoker.create_stack(name, greetings(metadata, names, machine=name, script=SCRIPT))
        if metadata != "STOKER_PUSH":
            told = sections(stoker, stack)
            assert list(told) == [POLLED[metadata]]
    with own_agent(tmp_path, None if metadata == "STOKER_PUSH" else told) as agent:
        agent.start()
        until(stoker, stack, "CREATE_COMPLETE", agent)
        stoker.until(lambda: len(agent.lines()) == len(names))
        answered = {each: each for each in names if each != "no_signal"}
        said = stoker.outputs(stack)
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


def test_the_agent_adopts_a_new_transport_from_the_document(stoker: Served, tmp_path: Path) -> None:
    name, names = "matrix-change", {"one": "CFN_SIGNAL"}
    stack = stoker.create_stack(name, greetings("POLL_SERVER_CFN", names, script=SCRIPT))
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
