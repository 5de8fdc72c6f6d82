"""Whoever writes to the Swift or Zaqar that carries a document has nothing run, and the document comes back."""

from __future__ import annotations

import json
from typing import Any

from support.agents import own_agent
from support.backends import ask, greetings
from support.server import served

SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\n'
FORGED = {
    "deployments": [{"id": "forged", "name": "x", "group": "script", "config": SCRIPT, "inputs": [], "outputs": []}],
    "os-collect-config": {"collectors": ["request"], "request": {"metadata_url": "http://127.0.0.1:9/"}},
}


def test_a_forged_document_is_refused_and_the_genuine_one_is_published_again(tmp_path, channel) -> None:
    metadata, source = channel.transports[0], channel.source
    folder = tmp_path / "agent"
    folder.mkdir()

    def said(who: str) -> dict[str, Any]:
        return greetings(metadata, {"d0": "CFN_SIGNAL"}, script=SCRIPT, who=who, machine=metadata)

    with served(tmp_path, *channel.flags(channel.peer, tmp_path)) as stoker, own_agent(folder) as agent:
        agent.enroll(stoker, metadata)
        stack = stoker.create_stack("forged", said("world"))
        stoker.until(lambda: source in (stoker.outputs(stack)["agent"] or {}))  # a Zaqar signs URLs by a job
        known = stoker.outputs(stack)["agent"][source]
        agent.words = (*agent.words, "--os-collect-config", str(folder / "sections.json"), "--sources", source)
        folder.joinpath("sections.json").write_text(json.dumps({"os-collect-config": {source: known}}))
        agent.start()
        stoker.await_stack(stack)
        channel.forge(known, FORGED)
        stoker.until(lambda: "is not signed" in agent.log, 60)
        server_id = stoker.heat("GET", f"{stack}/resources/server").body["resource"]["physical_resource_id"]

        def outcomes() -> list[str]:
            entries = stoker.heat("GET", f"/audit?server={server_id}").body["audit"]
            return [each["outcome"] for each in entries if each["action"] == f"take a document from {source}"]

        stoker.until(lambda: outcomes() == ["REFUSED"], 60)
        # What Stoker published is there again, where an object holds it; a queue may hold anything beside it.
        url = known.get("metadata_url")
        stoker.until(lambda: url is None or b"stoker-signature" in ask("GET", url).raw, 60)
        assert stoker.heat("PUT", stack, {"template": said("moon")}).status == 202
        stoker.await_stack(stack, "UPDATE_COMPLETE")
        assert agent.lines() == ["world", "moon"]
        assert list(agent.kept["sections"]) == [source]
        assert "127.0.0.1:9/" not in json.dumps(agent.kept)
