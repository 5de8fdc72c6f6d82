"""Our agent with a real Swift and a real Zaqar: a message that it takes is gone there, an object has its own ETag."""

from __future__ import annotations

import signal

from support.agents import own_agent
from support.backends import created, greeting, outputs, status, swift_flags, zaqar_flags
from support.server import Served, served

SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'


def goes_out_and_comes_back(stoker: Served, folder, metadata: str, way: str) -> None:
    """A stack with two deployments, and an update of them after the agent was killed."""

    def said(who: str) -> dict:
        made = greeting(metadata, way, who, count=2)
        made["resources"]["config"]["properties"]["config"] = SCRIPT
        return made

    stack = created(stoker, metadata.lower().replace("_", "-"), said("world"))
    known = outputs(stoker, stack)["agent"]
    sections = {name: known[name] for name in known["collectors"] if name != "local"}
    with own_agent(folder, sections) as agent:
        for who in ("world", "moon"):
            agent.start()
            if who == "moon":
                assert stoker.heat("PUT", stack, {"template": said("moon")}).status == 202
            stoker.until(lambda: not status(stoker, stack).endswith("IN_PROGRESS"), 60)
            assert status(stoker, stack).endswith("_COMPLETE"), agent.log[-3000:]
            assert (outputs(stoker, stack)["d0"], outputs(stoker, stack)["d1"]) == (who, who)
            agent.end(signal.SIGKILL)
    assert agent.lines() == ["world", "world", "moon", "moon"]


def test_stokers_agent_uses_objects_of_swift(tmp_path, swift):
    with served(tmp_path, *swift_flags(swift, tmp_path)) as stoker:
        goes_out_and_comes_back(stoker, tmp_path / "agent", "POLL_TEMP_URL", "TEMP_URL_SIGNAL")


def test_stokers_agent_uses_queues_of_zaqar(tmp_path, zaqar):
    with served(tmp_path, *zaqar_flags(zaqar)) as stoker:
        goes_out_and_comes_back(stoker, tmp_path / "agent", "ZAQAR_MESSAGE", "ZAQAR_SIGNAL")
