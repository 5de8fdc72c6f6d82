"""
Real os-collect-config with real hooks over every transport that it speaks: with embedded services, and with a real
Swift and a real Zaqar. To report over a queue it speaks Zaqar's API 1.1, which newer Zaqars have no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.backends import greetings, sections, swift_flags, zaqar_flags
from support.server import Served, served
from support.upstream import UpstreamAgent, upstream_agent

METADATA = ("POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")
SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "AUTO")
SCRIPT = '#!/bin/sh\nprintf "$who" > "$heat_outputs_path.said"\n'


@pytest.fixture(scope="module")
def external(tmp_path_factory, swift, start_old_zaqar) -> Iterator[Served]:
    """With the last Zaqar that these agents can post results to."""
    folder = tmp_path_factory.mktemp("external")
    with (
        start_old_zaqar(tmp_path_factory.mktemp("old-zaqar")) as old,
        served(folder, *swift_flags(swift, folder), *zaqar_flags(old)) as running,
    ):
        yield running


@pytest.mark.parametrize("site", ["embedded", "external"])
@pytest.mark.parametrize("metadata", METADATA)
def test_the_agent_of_openstacks_images_returns_the_results_of_deployments_and_triggers(
    request, heat_agents, tmp_path, site, metadata
):
    run_everything(request.getfixturevalue(site), heat_agents, tmp_path, metadata, SIGNALS)


def test_the_agent_of_images_reads_documents_from_any_zaqar(tmp_path, swift, zaqar, heat_agents):
    with served(tmp_path, *swift_flags(swift, tmp_path), *zaqar_flags(zaqar)) as stoker:
        run_everything(stoker, heat_agents, tmp_path / "there", "ZAQAR_MESSAGE", ("TEMP_URL_SIGNAL",))


def run_everything(stoker: Served, heat_agents: Path, folder: Path, metadata: str, signals: Sequence[str]) -> None:
    """Run deployments of a stack, and triggers, whose deployments have no resource behind them."""
    name = f"upstream-{metadata.lower().replace('_', '-')}"
    names = {signal.lower(): signal for signal in (*signals, "NO_SIGNAL")}
    stack = stoker.create_stack(name, greetings(metadata, names, script=SCRIPT))
    with upstream_agent(folder / "agent", heat_agents, sections(stoker, stack)) as agent:
        await_complete(stoker, stack, agent)
        written = folder / "agent" / "root" / "outputs"  # also without a signal it was run
        stoker.until(lambda: len(list(written.glob("*.said"))) == len(names), 60)
        del names["no_signal"]
        said = stoker.outputs(stack)
        assert {name: said[name] for name in names} == {name: name for name in names}
        for who, transport in names.items():
            source = {"stack": name, "resource": signals[0].lower(), "input_values": {"who": f"trigger {who}"}}
            made = stoker.create("software_triggers", **source, signal_transport=transport)
            path = f"/software_triggers/{made['id']}"
            stoker.until(lambda path=path: trigger(stoker, path)["status"] != "IN_PROGRESS", 60)
            assert trigger(stoker, path)["status"] == "COMPLETE", agent.log[-3000:]
            (target,) = trigger(stoker, path)["targets"]
            assert target["run"]["output_values"]["said"] == f"trigger {who}"
    assert stoker.outputs(stack) == said, "the results of triggers are none of the stack's"


def await_complete(stoker: Served, stack: str, agent: UpstreamAgent, action: str = "CREATE") -> None:
    stoker.until(lambda: stoker.stack(stack)["stack_status"] != f"{action}_IN_PROGRESS", 120)
    assert stoker.stack(stack)["stack_status"] == f"{action}_COMPLETE", agent.log[-3000:]


def trigger(stoker: Served, path: str) -> dict:
    return stoker.heat("GET", path).body["software_trigger"]


def test_a_new_transport_is_announced_by_the_old_one(embedded, heat_agents, tmp_path):
    def content(metadata: str, **names: str) -> dict:
        return greetings(metadata, {"one": "CFN_SIGNAL", **names}, script=SCRIPT)

    stack = embedded.create_stack("upstream-change", content("POLL_SERVER_CFN"))
    with upstream_agent(tmp_path, heat_agents, sections(embedded, stack)) as agent:
        await_complete(embedded, stack, agent)
        assert embedded.heat("PUT", stack, {"template": content("POLL_SERVER_HEAT")}).status == 202
        embedded.until(lambda: "collectors = heat" in agent.configuration.read_text(), 60)
        told = embedded.outputs(stack)["agent"]
        assert told["collectors"] == ["heat", "local"]
        assert set(told["cfn"].values()) == {None}
        assert embedded.heat("PUT", stack, {"template": content("POLL_SERVER_HEAT", two="HEAT_SIGNAL")}).status == 202
        await_complete(embedded, stack, agent, "UPDATE")
        assert embedded.outputs(stack)["two"] == "two"
