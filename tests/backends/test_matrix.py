"""
Stoker's own agent over every transport, with embedded services, and with a real Swift and a real Zaqar: documents come
by each, and results go back by each. Upstream's agent does so in ``test_upstream``.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.agents import OwnAgent, own_agent
from support.backends import ask, greetings, queues_of, sections, swift_flags, zaqar_flags
from support.server import Served, served

SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "NO_SIGNAL", "AUTO")
METADATA = ("STOKER_PUSH", "POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")
#: The agent that a server says to have. With Stoker's, its queue has a signed URL instead of a login.
UPSTREAM, OWN = {}, {"agent": "stoker"}
SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'
#: What an agent is told of a queue with a signed URL: no login.
SIGNED_URL = {"queue_id", "messaging_url", "project_id", "url_paths", "url_methods", "url_expires", "url_signature"}


@pytest.fixture(scope="module")
def external(tmp_path_factory, swift, zaqar) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("external")
    with served(folder, *swift_flags(swift, folder), *zaqar_flags(zaqar)) as running:
        yield running


def change(stoker: Served, stack: str, template: Mapping[str, Any]) -> None:
    answer = stoker.heat("PUT", stack, {"template": template})
    assert answer.status == 202, answer.raw
    stoker.await_stack(stack, "UPDATE_COMPLETE", 120)


@pytest.mark.parametrize(
    ("site", "metadata", "agent_of"),
    [
        *(("embedded", metadata, UPSTREAM) for metadata in METADATA),
        ("embedded", "ZAQAR_MESSAGE", OWN),
        *(("external", metadata, OWN) for metadata in METADATA),
    ],
)
def test_every_pair_of_transports_runs_a_config_once_and_returns_its_result(
    request, tmp_path: Path, site: str, metadata: str, agent_of: Mapping[str, str]
) -> None:
    stoker = request.getfixturevalue(site)
    queues = request.getfixturevalue("zaqar") if site == "external" else None
    before = queues_of(queues, stoker.project) if queues else set()
    names = {each.lower(): each for each in SIGNALS}
    if metadata == "STOKER_PUSH":
        names["stoker_signal"] = "STOKER_SIGNAL"
    name = f"matrix-{metadata}-{len(agent_of)}".lower().replace("_", "-")

    def content(names: Mapping[str, str]) -> dict[str, Any]:
        return greetings(metadata, names, script=SCRIPT, machine=name, **agent_of)

    stack = stoker.create_stack(name, content(names))
    told = None
    if metadata != "STOKER_PUSH":
        stoker.until(lambda: len((stoker.outputs(stack)["agent"] or {}).get("collectors", ())) > 1, 60)
        told = sections(stoker, stack)
    if (metadata, agent_of) == ("ZAQAR_MESSAGE", OWN):
        assert set(told["zaqar"]) == SIGNED_URL
        assert told["zaqar"]["url_methods"] == "GET"
    with own_agent(tmp_path, told) as agent:
        if told is None:
            agent.enroll(stoker, name)
        agent.start()
        stoker.await_stack(stack, seconds=120)
        stoker.until(lambda: len(agent.lines()) == len(names))
        answered = {name: name for name in names if name != "no_signal"}
        said = stoker.outputs(stack)
        assert {name: said[name] for name in answered} == answered
        # A second agent on the same disk, and another document: what has run stays run.
        agent.end(signal.SIGKILL)
        agent.start()
        change(stoker, stack, content({**names, "last": "ZAQAR_SIGNAL"}))
        assert sorted(agent.lines()) == sorted([*names, "last"])
    assert not [secret for secret in secrets(agent) if secret in agent.log]
    assert stoker.heat("DELETE", stack).status == 204
    stoker.until(lambda: not queues or queues_of(queues, stoker.project) <= before, 60)
    if metadata == "POLL_TEMP_URL":
        stoker.until(lambda: ask("GET", told["request"]["metadata_url"]).status == 404)


def secrets(agent: OwnAgent) -> set[str]:
    """What opens something, of all that this agent has been told."""
    pattern = r'(?:[Pp]assword|secret_access_key|url_signature)": "([^"]+)|[?&]([^"]*sig[^"]+)'
    files = [*agent.root.glob("state/runs/*/entry.json"), *agent.root.glob("etc/*.json")]
    found = {word for file in files for words in re.findall(pattern, file.read_text()) for word in words if word}
    assert found
    return found


def test_the_agent_adopts_a_new_transport_from_the_document(embedded: Served, tmp_path: Path) -> None:
    """Each comes through what was there before, also a signed URL instead of a login, and a login instead of it."""
    names = {"one": "CFN_SIGNAL"}
    stack = embedded.create_stack("adopting", greetings("POLL_SERVER_CFN", names, script=SCRIPT))
    with own_agent(tmp_path, sections(embedded, stack)) as agent:
        agent.start()
        embedded.await_stack(stack)
        for metadata, agent_of, source, key, absent in (
            ("POLL_TEMP_URL", UPSTREAM, "request", "metadata_url", "password"),
            ("ZAQAR_MESSAGE", UPSTREAM, "zaqar", "password", "url_signature"),
            ("ZAQAR_MESSAGE", OWN, "zaqar", "url_signature", "password"),
            ("ZAQAR_MESSAGE", UPSTREAM, "zaqar", "password", "url_signature"),
            ("POLL_SERVER_HEAT", UPSTREAM, "heat", "password", "url_signature"),
        ):
            names[f"run{len(names)}"] = "HEAT_SIGNAL"
            change(embedded, stack, greetings(metadata, names, script=SCRIPT, **agent_of))
            embedded.until(lambda source=source, key=key: key in agent.kept["sections"].get(source, ()))
            assert (agent.kept["order"], list(agent.kept["sections"])) == (["stoker", source], [source])
            assert absent not in agent.kept["sections"][source]
        agent.end()
        agent.start()  # with the words and the file of its first start, which know of cfn only
        change(embedded, stack, greetings("POLL_SERVER_HEAT", {**names, "last": "CFN_SIGNAL"}, script=SCRIPT))
        assert agent.lines() == [*names, "last"]
        assert agent.root.joinpath("etc", "sources.json").stat().st_mode & 0o777 == 0o600
