"""Whoever writes to the Swift or Zaqar that carries a document has nothing run, and the document comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.agents import OwnAgent, own_agent
from support.backends import CLIENT, ask, greeting, swift_flags, zaqar_flags
from support.server import Served, served
from support.service_processes import Peer

SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\n'
FORGED = {
    "deployments": [{"id": "forged", "name": "x", "group": "script", "config": SCRIPT, "inputs": [], "outputs": []}],
    "os-collect-config": {"collectors": ["request"], "request": {"metadata_url": "http://127.0.0.1:9/"}},
}


def said(metadata: str, who: str) -> dict[str, Any]:
    made = greeting(metadata, "CFN_SIGNAL", who)
    made["resources"]["config"]["properties"]["config"] = SCRIPT
    made["resources"]["server"]["properties"]["name"] = metadata
    return made


def signed(section: dict[str, Any]) -> bool:
    """Whether what Stoker published is there again, where an object holds it; a queue may hold anything beside it."""
    url = section.get("metadata_url")
    return url is None or b"stoker-signature" in ask("GET", url).raw


def forge(stoker: Served, agent: OwnAgent, metadata: str, source: str, write: Callable[[dict[str, Any]], None]) -> None:
    """``write`` puts the forged document where the section says that the agent reads."""
    stack = stoker.create_stack(metadata.lower().replace("_", "-"), said(metadata, "world"))
    stoker.until(lambda: source in (stoker.outputs(stack)["agent"] or {}))  # a Zaqar signs URLs by a job
    known = stoker.outputs(stack)["agent"][source]
    agent.words = (*agent.words, "--os-collect-config", str(agent.folder / "sections.json"), "--sources", source)
    agent.folder.joinpath("sections.json").write_text(json.dumps({"os-collect-config": {source: known}}))
    agent.start()
    stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
    write(known)
    stoker.until(lambda: "is not signed" in agent.log, 60)
    server_id = stoker.heat("GET", f"{stack}/resources/server").body["resource"]["physical_resource_id"]

    def audited() -> bool:
        entries = stoker.heat("GET", f"/audit?server={server_id}").body["audit"]
        return [each["outcome"] for each in entries if each["action"] == f"take a document from {source}"] == [
            "REFUSED"
        ]

    stoker.until(audited, 60)
    # Told of it, Stoker has put the document back.
    stoker.until(lambda: signed(known), 60)
    assert stoker.heat("PUT", stack, {"template": said(metadata, "moon")}).status == 202
    stoker.until(lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE", 60)
    assert agent.lines() == ["world", "moon"]
    assert list(agent.kept["sections"]) == [source]
    assert "127.0.0.1:9/" not in json.dumps(agent.kept)


def test_a_document_forged_in_swift_is_refused(tmp_path, swift: Peer) -> None:
    login = {"X-Storage-User": "proj:user", "X-Storage-Pass": "pw"}
    token = ask("GET", f"{swift.url}/auth/v1.0", None, login).headers["X-Auth-Token"]
    with served(tmp_path, *swift_flags(swift, tmp_path)) as stoker, own_agent(tmp_path / "agent") as agent:

        def write(section: dict[str, Any]) -> None:
            place = section["metadata_url"].partition("?")[0]
            assert ask("PUT", place, FORGED, {"X-Auth-Token": token}).status == 201

        agent.enroll(stoker, "POLL_TEMP_URL")
        forge(stoker, agent, "POLL_TEMP_URL", "request", write)


def test_a_document_forged_in_zaqar_is_refused(tmp_path, zaqar: Peer) -> None:
    with served(tmp_path, *zaqar_flags(zaqar)) as stoker, own_agent(tmp_path / "agent") as agent:

        def write(section: dict[str, Any]) -> None:
            headers = {**CLIENT, "X-Project-Id": section["project_id"]}
            body = {"messages": [{"body": FORGED, "ttl": 300}]}
            place = f"{zaqar.url}/v2/queues/{section['queue_id']}/messages"
            assert ask("POST", place, body, headers).status == 201

        agent.enroll(stoker, "ZAQAR_MESSAGE")
        forge(stoker, agent, "ZAQAR_MESSAGE", "zaqar", write)


@pytest.fixture(autouse=True)
def _folders(tmp_path) -> None:
    tmp_path.joinpath("agent").mkdir()
