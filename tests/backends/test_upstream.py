"""
Real os-collect-config with real hooks, over a real Swift and a real Zaqar: every way out with every way back.

To report over a queue it speaks Zaqar's API 1.1, which newer Zaqars have no more. Ways that have nothing to do with
either service are here with those that do; with embedded services they are in ``agents/test_upstream``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.backends import greetings, sections, swift_flags, zaqar_flags
from support.server import Served, served
from support.upstream import upstream_agent

SCRIPT = '#!/bin/sh\nprintf "$who" > "$heat_outputs_path.said"\n'
ELSEWHERE = ("TEMP_URL_SIGNAL", "ZAQAR_SIGNAL")
HERE = ("CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL")
#: Each with the ways back that make it a pair with something elsewhere in it.
PAIRS = {
    "POLL_SERVER_CFN": ELSEWHERE,
    "POLL_SERVER_HEAT": ELSEWHERE,
    "POLL_TEMP_URL": (*ELSEWHERE, *HERE),
    "ZAQAR_MESSAGE": (*ELSEWHERE, *HERE),
}


@pytest.fixture(scope="module")
def stoker(tmp_path_factory, swift, start_old_zaqar) -> Iterator[Served]:
    """With the last Zaqar that these agents can post results to."""
    folder = tmp_path_factory.mktemp("stoker")
    with (
        start_old_zaqar(tmp_path_factory.mktemp("old-zaqar")) as old,
        served(folder, *swift_flags(swift, folder), *zaqar_flags(old)) as running,
    ):
        yield running


@pytest.mark.parametrize("metadata", PAIRS)
def test_the_agent_of_openstacks_images_runs_a_deployment(tmp_path, stoker, heat_agents, metadata):
    there_and_back(tmp_path, stoker, heat_agents, metadata, PAIRS[metadata])


def test_the_agent_of_images_reads_documents_from_any_zaqar(tmp_path, swift, zaqar, heat_agents):
    with served(tmp_path, *swift_flags(swift, tmp_path), *zaqar_flags(zaqar)) as stoker:
        there_and_back(tmp_path / "there", stoker, heat_agents, "ZAQAR_MESSAGE", ("TEMP_URL_SIGNAL",))


def there_and_back(folder: Path, stoker: Served, heat_agents: Path, metadata: str, signals: tuple[str, ...]) -> None:
    stack = stoker.create_stack(
        f"upstream-{metadata.lower().replace('_', '-')}",
        greetings(metadata, dict(zip(signals, signals, strict=True)), script=SCRIPT),
    )
    with upstream_agent(folder / "agent", heat_agents, sections(stoker, stack)) as agent:
        stoker.until(lambda: stoker.stack(stack)["stack_status"] != "CREATE_IN_PROGRESS", 120)
        assert stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", agent.log[-3000:]
        said_by = folder / "agent" / "root" / "outputs"  # also without a signal it was run
        stoker.until(lambda: len(list(said_by.glob("*.said"))) == len(signals), 60)
    said = stoker.outputs(stack)
    answered = {name: name for name in signals if name != "NO_SIGNAL"}
    assert {name: said[name] for name in answered} == answered
