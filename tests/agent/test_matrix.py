"""Stoker's own agent over every transport: documents come by each, and results go back by each."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.agents import OwnAgent, own_agent
from support.backends import greetings, sections
from support.server import Served

pytestmark = pytest.mark.slow

SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "NO_SIGNAL")
#: The ways of documents: a transport, the agent that the server says to have, and the agent's source.
PUSH, CFN = ("STOKER_PUSH", None, "stoker"), ("POLL_SERVER_CFN", None, "cfn")
HEAT, OBJECTS = ("POLL_SERVER_HEAT", None, "heat"), ("POLL_TEMP_URL", None, "request")
QUEUES, SIGNED_QUEUES = ("ZAQAR_MESSAGE", None, "zaqar"), ("ZAQAR_MESSAGE", "stoker", "zaqar")
SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'
#: What a signed URL of a queue is: no login.
OPENING = {"queue_id", "messaging_url", "project_id", "url_paths", "url_methods", "url_expires", "url_signature"}

Way = tuple[str, str | None, str]


def content(way: Way, signals: Mapping[str, str], **more: Any) -> dict[str, Any]:
    metadata, agent, _ = way
    return greetings(metadata, signals, script=SCRIPT, **({"agent": agent} if agent else {}), **more)


def change(stoker: Served, stack: str, template: dict[str, Any]) -> None:
    answer = stoker.heat("PUT", stack, {"template": template})
    assert answer.status == 202, answer.raw


@pytest.mark.parametrize(
    "way", [PUSH, CFN, HEAT, OBJECTS, QUEUES, SIGNED_QUEUES], ids=lambda way: "-".join(filter(None, way[:2]))
)
def test_every_pair_of_transports_runs_a_config_once_and_returns_its_result(
    stoker: Served, tmp_path: Path, way: Way
) -> None:
    names = {each.lower(): each for each in SIGNALS}
    name = f"matrix-{'-'.join(filter(None, way[:2])).lower()}"
    told = None
    with own_agent(tmp_path) as agent:
        if way == PUSH:
            names["stoker_signal"] = "STOKER_SIGNAL"
            agent.enroll(stoker, name)
        stack = stoker.create_stack(name, content(way, names, machine=name))
        if way != PUSH:
            told = sections(stoker, stack)
            assert list(told) == [way[2]]
        if way == SIGNED_QUEUES:
            assert set(told["zaqar"]) == OPENING
    with own_agent(tmp_path, told) as agent:
        agent.start()
        stoker.await_stack(stack)
        stoker.until(lambda: len(agent.lines()) == len(names))
        answered = {each: each for each in names if each != "no_signal"}
        said = stoker.outputs(stack)
        assert {each: said[each] for each in answered} == answered
        # A second agent on the same disk, and another document: what has run stays run.
        agent.end(signal.SIGKILL)
        agent.start()
        change(stoker, stack, content(way, {**names, "last": "CFN_SIGNAL"}, machine=name))
        stoker.await_stack(stack, "UPDATE_COMPLETE")
    assert sorted(agent.lines()) == sorted([*names, "last"])
    assert not [secret for secret in secrets(agent) if secret in agent.log]


def secrets(agent: OwnAgent) -> list[str]:
    """What opens something, of all that this agent has been told."""
    files = [*agent.root.glob("state/runs/*/entry.json"), *agent.root.glob("etc/*.json")]
    found = [
        word
        for file in files
        for word in re.findall(
            r'[Pp]assword": "([^"]+)|secret_access_key": "([^"]+)|url_signature": "([^"]+)|[?&]([^"]*sig[^"]+)',
            file.read_text(),
        )
    ]
    flat = {each for words in found for each in words if each}
    assert flat
    return sorted(flat)


def test_the_agent_adopts_a_new_transport_from_the_document(stoker: Served, tmp_path: Path) -> None:
    """Each comes through what was there before, also a signed URL instead of a login, and a login instead of it."""
    names = {"one": "CFN_SIGNAL"}
    stack = stoker.create_stack("matrix-change", content(CFN, names))
    with own_agent(tmp_path, sections(stoker, stack)) as agent:
        agent.start()
        stoker.await_stack(stack)
        for number, (way, key) in enumerate(
            (
                (OBJECTS, "metadata_url"),
                (QUEUES, "password"),
                (SIGNED_QUEUES, "url_signature"),
                (QUEUES, "password"),
                (HEAT, "password"),
            )
        ):
            names[f"run-{number}"] = "HEAT_SIGNAL"
            change(stoker, stack, content(way, names))
            stoker.await_stack(stack, "UPDATE_COMPLETE")
            source = way[2]
            stoker.until(lambda source=source, key=key: key in agent.kept["sections"].get(source, ()))
            assert agent.kept["order"] == ["stoker", source]
            assert list(agent.kept["sections"]) == [source]
            assert len({"password", "url_signature"} & set(agent.kept["sections"][source])) <= 1
        agent.end()
        agent.start()  # with the words and the file of its first start, which know of cfn only
        change(stoker, stack, content(HEAT, {**names, "last": "CFN_SIGNAL"}))
        stoker.await_stack(stack, "UPDATE_COMPLETE")
        assert agent.lines() == [*names, "last"]
        assert agent.root.joinpath("etc", "sources.json").stat().st_mode & 0o777 == 0o600
