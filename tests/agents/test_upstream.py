"""Real os-collect-config with real hooks, over every transport that it speaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.backends import greetings, sections
from support.server import Served, served
from support.upstream import upstream_agent

METADATA = ("POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")
SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL")
SCRIPT = '#!/bin/sh\necho "hello $who"\nprintf "$who" > "$heat_outputs_path.said"\n'


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("transports")) as running:
        yield running


@pytest.mark.parametrize("metadata", METADATA)
def test_upstream_agents_run_deployments_and_triggers_and_return_their_results(stoker, heat_agents, tmp_path, metadata):
    """No resource stands behind the deployments of a trigger: their results come by places of their own."""
    signals = {name.lower(): name for name in SIGNALS}
    stack = stoker.create_stack(
        f"upstream-{metadata.lower()}", greetings(metadata, signals, script=SCRIPT, is_ordered=True)
    )
    name = stack.split("/")[2]
    with upstream_agent(tmp_path, heat_agents, sections(stoker, stack)) as agent:
        stoker.until(lambda: stoker.stack(stack)["stack_status"] != "CREATE_IN_PROGRESS", 60)
        assert stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", agent.log[-3000:]
        for transport in (None, *SIGNALS):
            said = {"stack": name, "resource": "cfn_signal", "input_values": {"who": transport or "nobody"}}
            made = stoker.heat("POST", "/software_triggers", {**said, "signal_transport": transport})
            assert made.status == 201, made.raw
            path = f"/software_triggers/{made.body['software_trigger']['id']}"
            stoker.until(lambda path=path: shown(stoker, path)["status"] != "IN_PROGRESS", 60)
            assert shown(stoker, path)["status"] == "COMPLETE", agent.log[-3000:]
            (target,) = shown(stoker, path)["targets"]
            assert target["run"]["output_values"]["said"] == said["input_values"]["who"]
    assert stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE"
    values = stoker.outputs(stack)
    assert {name: values[name] for name in signals} == {name: name for name in signals}


def shown(stoker: Served, path: str) -> dict:
    return stoker.heat("GET", path).body["software_trigger"]


def test_a_new_transport_is_announced_by_the_old_one(stoker, heat_agents, tmp_path):
    before = greetings("POLL_SERVER_CFN", {"one": "CFN_SIGNAL"}, script=SCRIPT, is_ordered=True)
    stack = stoker.create_stack("upstream-change", before)
    known = stoker.outputs(stack)["agent"]
    with upstream_agent(tmp_path, heat_agents, {"cfn": known["cfn"]}) as agent:
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
        after = greetings("POLL_SERVER_HEAT", {"one": "CFN_SIGNAL"}, script=SCRIPT, is_ordered=True)
        assert stoker.heat("PUT", stack, {"template": after}).status == 202
        stoker.until(lambda: "collectors = heat" in agent.configuration.read_text(), 60)
        told = stoker.outputs(stack)["agent"]
        assert told["collectors"] == ["heat", "local"]
        assert set(told["cfn"].values()) == {None}
        later = greetings(
            "POLL_SERVER_HEAT", {"one": "CFN_SIGNAL", "two": "HEAT_SIGNAL"}, script=SCRIPT, is_ordered=True
        )
        assert stoker.heat("PUT", stack, {"template": later}).status == 202
        stoker.until(lambda: stoker.outputs(stack).get("two") == "two", 60)
