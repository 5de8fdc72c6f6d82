"""
Real os-collect-config with real hooks, over a real Swift and a real Zaqar.

To report over a queue it speaks Zaqar's API 1.1, which newer Zaqars have no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import peers
from support.elsewhere import created, outputs, status, swift_flags, zaqar_flags
from support.peers import Peer
from support.server import served
from support.templates import config, deployment, server, template
from support.upstream import heat_agents, upstream_agent

SCRIPT = '#!/bin/sh\nprintf "$who" > "$heat_outputs_path.said"\n'


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    return heat_agents(tmp_path_factory.mktemp("heat-agents"))


def greeting(metadata, signals):
    machine = server()
    machine["properties"]["software_config_transport"] = metadata
    resources = {"server": machine, "config": config(SCRIPT, inputs=("who",), outputs=("said",))}
    before: tuple[str, ...] = ()
    for signal in signals:
        resources[signal] = deployment(after=before, signal_transport=signal, input_values={"who": signal})
        before = (signal,)
    shown = {name: {"value": {"get_attr": [name, "said"]}} for name in signals}
    shown["agent"] = {"value": {"get_attr": ["server", "os_collect_config"]}}
    return template(resources, outputs=shown)


@pytest.fixture(scope="module")
def old_zaqar(tmp_path_factory) -> Iterator[Peer]:
    with peers.zaqar(tmp_path_factory.mktemp("old-zaqar"), packages=peers.OLD_ZAQAR) as running:
        yield running


@pytest.mark.parametrize("metadata", ["POLL_TEMP_URL", "ZAQAR_MESSAGE"])
def test_the_agent_of_images(tmp_path, database_url, swift, zaqar, release, metadata):
    there_and_back(tmp_path, database_url, swift, zaqar, release, metadata, ("TEMP_URL_SIGNAL",))


def test_the_agent_of_images_reports_over_queues(tmp_path, database_url, swift, old_zaqar, release):
    signals = ("ZAQAR_SIGNAL", "TEMP_URL_SIGNAL")
    there_and_back(tmp_path, database_url, swift, old_zaqar, release, "ZAQAR_MESSAGE", signals)


def there_and_back(tmp_path, database_url, swift, zaqar, release, metadata, signals):
    with served(tmp_path, *swift_flags(swift), *zaqar_flags(zaqar), database=database_url) as stoker:
        stack = created(stoker, "upstream", greeting(metadata, signals))
        known = outputs(stoker, stack)["agent"]
        sections = {name: known[name] for name in known["collectors"] if name != "local"}
        with upstream_agent(tmp_path / "agent", release, sections) as agent:
            stoker.until(lambda: status(stoker, stack) != "CREATE_IN_PROGRESS", 120)
            assert status(stoker, stack) == "CREATE_COMPLETE", agent.log[-3000:]
        said = outputs(stoker, stack)
        assert {name: said[name] for name in signals} == {name: name for name in signals}
