"""
Every way out with every way back, over a real Swift and a real Zaqar: what an agent of ours does with each of them.

Upstream's agent does so in ``test_upstream``. Ways that have nothing to do with either are with those that do, so that
each agent is one machine with everything on it; with embedded services they are in ``agent/test_matrix``.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from support.agents import own_agent
from support.backends import ask, greetings, queues_of, sections, swift_flags, zaqar_flags
from support.server import Served, served

METADATA = ("STOKER_PUSH", "POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")
SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "NO_SIGNAL", "AUTO")
SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'


@pytest.fixture(scope="module")
def stoker(tmp_path_factory, swift, zaqar) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("matrix")
    with served(folder, *swift_flags(swift, folder), *zaqar_flags(zaqar)) as running:
        yield running


def everything(metadata: str, signals: dict[str, str]) -> dict:
    return greetings(metadata, signals, script=SCRIPT, machine=metadata.lower(), agent="stoker")


@pytest.mark.parametrize("metadata", METADATA)
def test_every_pair_of_transports_runs_a_config_once_and_returns_its_result(stoker, zaqar, tmp_path, metadata):
    signals = {each.lower(): each for each in SIGNALS}
    with own_agent(tmp_path) as agent:
        if metadata == "STOKER_PUSH":
            agent.enroll(stoker, metadata.lower())
    before = queues_of(zaqar, stoker.project)
    stack = stoker.create_stack(f"own-{metadata.lower().replace('_', '-')}", everything(metadata, signals))

    def told():
        return stoker.outputs(stack).get("agent") or {}

    stoker.until(lambda: metadata == "STOKER_PUSH" or len(told().get("collectors", ())) > 1, 60)
    known = sections(stoker, stack)
    if metadata == "ZAQAR_MESSAGE":
        assert "password" not in known["zaqar"]
        assert (known["zaqar"]["messaging_url"], known["zaqar"]["url_methods"]) == (zaqar.url, "GET")
    with own_agent(tmp_path, None if metadata == "STOKER_PUSH" else known) as agent:
        agent.start()
        stoker.until(lambda: stoker.stack(stack)["stack_status"] != "CREATE_IN_PROGRESS", 120)
        assert stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", agent.log[-3000:]
        stoker.until(lambda: len(agent.lines()) == len(signals))
        answered = {name: name for name in signals if name != "no_signal"}
        said = stoker.outputs(stack)
        assert {name: said[name] for name in answered} == answered
        agent.end(signal.SIGKILL)
        agent.start()
        more = everything(metadata, {**signals, "last": "ZAQAR_SIGNAL"})
        assert stoker.heat("PUT", stack, {"template": more}).status == 202
        stoker.until(lambda: stoker.stack(stack)["stack_status"] != "UPDATE_IN_PROGRESS", 120)
        assert stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE", agent.log[-3000:]
        assert sorted(agent.lines()) == sorted([*signals, "last"])
    assert stoker.heat("DELETE", stack).status == 204
    stoker.until(lambda: queues_of(zaqar, stoker.project) <= before, 60)
    if metadata == "POLL_TEMP_URL":
        stoker.until(lambda: ask("GET", known["request"]["metadata_url"]).status == 404)
