"""
What Stoker signs for the agents of a server, whatever carries it; ``backends/test_forged_documents`` has an agent that
gets a forged document, and ``agent/test_signatures`` what an agent refuses.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from email import message_from_string as message
from typing import Any

import pytest

from support.agents import OwnAgent, own_agent
from support.backends import ask, read_signed_queue
from support.server import Served, served, served_on
from support.templates import config, deployment, server, template

SECTION = "stoker-signature"
SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\n'


def stack_of(machine: str, *names: str) -> dict[str, Any]:
    host = server(machine, software_config_transport="POLL_TEMP_URL", agent="stoker")
    resources: dict[str, Any] = {"server": host, "config": config(SCRIPT, inputs=("who",))}
    for name in names:
        resources[name] = deployment(signal_transport="CFN_SIGNAL", input_values={"who": name})
    return template(resources, outputs={"agent": {"value": {"get_attr": ["server", "os_collect_config"]}}})


def document(stoker: Served, stack: str, *names: str) -> dict[str, Any]:
    """What Stoker has carried, once it is about these deployments."""
    found: list[Any] = []

    def there() -> bool:
        known = stoker.outputs(stack)["agent"]
        if "request" in known["collectors"]:
            got = ask("GET", known["request"]["metadata_url"])
            found[:] = [got.body] if got.raw else []
        else:
            found[:] = [each["body"] for each in read_signed_queue(known["zaqar"]).body["messages"]]
        said = [each["inputs"] for each in found[-1]["deployments"]] if found else []
        whom = [entry["value"] for inputs in said for entry in inputs if entry["name"] == "who"]
        return sorted(whom) == sorted(names)

    stoker.until(there, 60)
    return found[-1]


def until(stoker: Served, agent: OwnAgent, holds: Callable[[], bool]) -> None:
    try:
        stoker.until(holds, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{agent.log[-3000:]}") from None


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def each_database(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("signed")) as running:
        yield running


def test_revisions_grow_whatever_the_transport_and_the_agent(each_database, tmp_path) -> None:
    """A template's server that boots with a key is enrolled later: what was signed for it before is signed anew."""
    stoker, name = each_database, "grows"
    machine = stack_of(name, "one")
    machine["outputs"]["boot"] = {"value": {"get_attr": ["server", "user_data"]}}
    stack = stoker.create_stack(name, machine)
    first = document(stoker, stack, "one")
    (key,) = (
        part.get_payload(decode=True).decode()
        for part in message(stoker.outputs(stack)["boot"]).walk()
        if part.get_filename() == "stoker-document-key"
    )
    assert key not in json.dumps(first)
    tmp_path.joinpath("key").write_text(key)
    refused = stoker.request("GET", "/agent/v1/document", None, {"Authorization": f"Bearer {key}"})
    assert refused.status == 401, "a key that documents are verified with opens nothing"
    known = stoker.outputs(stack)["agent"]
    words = ("--document-key", str(tmp_path / "key"))
    with own_agent(tmp_path / "booted", {"request": known["request"]}, *words) as agent:
        agent.start()
        until(stoker, agent, lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE")
        machine["resources"]["server"]["properties"]["software_config_transport"] = "ZAQAR_MESSAGE"
        machine["resources"]["two"] = deployment(signal_transport="CFN_SIGNAL", input_values={"who": "two"})
        assert stoker.heat("PUT", stack, {"template": machine}).status == 202
        until(stoker, agent, lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE")
        stoker.until(lambda: agent.kept["order"] == ["stoker", "zaqar"])
        second = document(stoker, stack, "one", "two")
        assert sorted(agent.lines()) == ["one", "two"]
        assert "refused" not in agent.log
        assert "believed" not in agent.log
        assert key not in agent.log
    with own_agent(tmp_path / "enrolled", {"zaqar": stoker.outputs(stack)["agent"]["zaqar"]}) as agent:
        agent.enroll(stoker, name)
        agent.words = (*agent.words, "--sources", "zaqar")
        signed = second[SECTION]["revision"]
        stoker.until(lambda: document(stoker, stack, "one", "two")[SECTION]["revision"] > signed)
        third = document(stoker, stack, "one", "two")
        machine["resources"]["three"] = deployment(signal_transport="CFN_SIGNAL", input_values={"who": "three"})
        agent.start()
        assert stoker.heat("PUT", stack, {"template": machine}).status == 202
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE" and "three" in agent.lines(), 60)
    revisions = [each[SECTION]["revision"] for each in (first, second, third)]
    assert revisions == sorted(set(revisions))


def test_a_site_may_require_that_agents_verify(tmp_path) -> None:
    with served(tmp_path, "--require-signed-transports") as stoker:

        def made(agent: str | None, transport: str | None = "POLL_TEMP_URL") -> Any:
            name = f"s-{uuid.uuid4().hex[:8]}"
            said = stack_of(name, "one")
            more = {"agent": agent} if agent else {}
            said["resources"]["server"] = server(name, software_config_transport=transport, **more)
            return stoker.heat("POST", "/stacks", {"stack_name": name, "template": said})

        def path(answer: Any) -> str:
            """The whole one, with the stack's name."""
            found = stoker.heat("GET", f"/stacks/{answer.body['stack']['id']}")
            return str(found.headers["Location"]).partition(stoker.project)[2]

        refused = made("os-collect-config")
        assert refused.status == 400
        for words in ("require_signed_transports", "os-collect-config cannot verify", "POLL_SERVER_CFN"):
            assert words in refused.body["error"]["message"]
        unsaid = made(None)
        assert unsaid.status == 201
        found = stoker.heat("GET", path(unsaid))
        assert b"require_signed_transports" in found.raw, found.raw
        for agent, transport, section in (
            ("stoker", "POLL_TEMP_URL", "request"),
            ("stoker", "AUTO", "zaqar"),
            (None, "AUTO", "cfn"),
            ("os-collect-config", "AUTO", "cfn"),
        ):
            answer = made(agent, transport)
            assert answer.status == 201, answer.raw
            assert section in stoker.outputs(path(answer))["agent"]["collectors"], (agent, transport)
