"""
Whoever carries a server's document (an object store, a messaging service, or an attacker who writes there) can withhold
it, but cannot change what the server runs or whom it believes. The agents are real ones, and so are the documents that
Stoker signed; what lies between them is the test's.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email import message_from_string as message
from pathlib import Path
from typing import Any

import pytest

from support.agents import OwnAgent, own_agent
from support.backends import ask, read_signed_queue
from support.http_stub import Answering, Asked, Said, answering, forward
from support.server import Served, served, served_on
from support.templates import config, deployment, server, template

SECTION = "stoker-signature"
SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\n'
CARRIERS = {"object": "POLL_TEMP_URL", "queue": "ZAQAR_MESSAGE"}


@dataclass
class Carrier:
    """
    What lies between an agent and the stores: everything goes through, but that ``documents`` stand in the place of the
    server's object (the last one) or of the messages in its queue.
    """

    documents: list[Any] | None = None
    stoker: Served | None = None

    def answer(self, asked: Asked) -> Said:
        if self.documents is not None and asked.verb in ("GET", "HEAD") and asked.path.startswith("/object-store/"):
            return Said(body=json.dumps(self.documents[-1]).encode())
        if self.documents is not None and asked.verb == "GET" and asked.path.startswith("/messaging/"):
            return Said(body={"messages": [{"body": each} for each in self.documents], "links": []})
        assert self.stoker is not None
        return forward(self.stoker.port, asked)


@pytest.fixture(scope="module")
def carried(tmp_path_factory) -> Iterator[tuple[Served, Carrier]]:
    carrier = Carrier()
    with (
        answering(carrier.answer) as between,
        served(tmp_path_factory.mktemp("carried"), "--public-url", between.url) as stoker,
    ):
        carrier.stoker = stoker
        yield stoker, carrier


@pytest.fixture
def evil() -> Iterator[Answering]:
    """Where a forged document has agents go."""
    with answering(lambda _: Said(404)) as http:
        yield http


def stack_of(machine: str, kind: str, *names: str) -> dict[str, Any]:
    host = server(machine, software_config_transport=CARRIERS[kind], agent="stoker")
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


def until_said(stoker: Served, agent: OwnAgent, words: str, times: int = 1) -> None:
    until(stoker, agent, lambda: agent.log.count(words) >= times)


@pytest.mark.parametrize("kind", list(CARRIERS))
def test_an_agent_takes_only_what_stoker_signed_for_it(carried, evil, tmp_path: Path, kind: str) -> None:
    (stoker, carrier), name = carried, f"forged-{kind}"
    carrier.documents = None
    OwnAgent(tmp_path).enroll(stoker, name)
    stack = stoker.create_stack(name, stack_of(name, kind, "one"))
    known = stoker.outputs(stack)["agent"]
    source = {"object": "request", "queue": "zaqar"}[kind]
    with own_agent(tmp_path, {source: known[source]}, "--sources", source) as agent:
        first = document(stoker, stack, "one")
        other = stoker.create_stack(f"{name}-other", stack_of(f"{name}-other", kind, "other"))
        foreign = document(stoker, other, "other")

        forged = copy.deepcopy(first)
        forged["deployments"][0]["config"] = '#!/bin/sh\necho forged >>"$WORK/runs"\n'
        master = {"collectors": ["request"], "request": {"metadata_url": f"{evil.url}/master"}}
        unsigned = {name: value for name, value in forged.items() if name != SECTION}
        attacks = [
            ({**unsigned, "os-collect-config": master}, "is not signed"),
            (forged, "was altered"),
            ({**first, "os-collect-config": master}, "was altered"),
            (foreign, "is signed for another server"),
        ]
        carrier.documents = [attacks[0][0]]
        agent.start()
        for forgery, words in attacks:
            carrier.documents = [forgery]
            until_said(stoker, agent, words, agent.log.count(words) + 1)
        server_id = stoker.heat("GET", f"{stack}/resources/server").body["resource"]["physical_resource_id"]

        def refusals() -> list[dict[str, Any]]:
            entries = stoker.heat("GET", f"/audit?server={server_id}").body["audit"]
            return [each for each in entries if each["action"].startswith("take a document")]

        stoker.until(lambda: bool(refusals()))  # the agent reports it after its log
        (entry,) = refusals()
        assert (entry["outcome"], entry["actor"]) == ("REFUSED", f"the agent of {name}")
        assert "is not signed" in entry["reason"]
        assert agent.lines() == []

        # In a queue, what is forged does not keep what is genuine from its server.
        carrier.documents = [first, attacks[0][0]] if kind == "queue" else [first]
        until(stoker, agent, lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE")
        assert stoker.heat("PUT", stack, {"template": stack_of(name, kind, "one", "two")}).status == 202
        carrier.documents = None
        second = document(stoker, stack, "one", "two")
        assert second[SECTION]["revision"] > first[SECTION]["revision"]
        carrier.documents = [second, first] if kind == "queue" else [second]
        until(stoker, agent, lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE")

        carrier.documents = [first]
        until_said(stoker, agent, "is older", agent.log.count("is older") + 1)
        agent.end()
        agent.start()
        until_said(stoker, agent, "is older", agent.log.count("is older") + 1)
        assert sorted(agent.lines()) == ["one", "two"]
        assert evil.asked == []
        assert evil.url not in json.dumps(agent.kept)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def each_database(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("signed")) as running:
        yield running


def test_revisions_grow_whatever_the_transport_and_the_agent(each_database, tmp_path) -> None:
    """A template's server that boots with a key is enrolled later: what was signed for it before is signed anew."""
    stoker, name = each_database, "grows"
    machine = stack_of(name, "object", "one")
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
        third = document_signed_after(stoker, stack, second[SECTION]["revision"])
        machine["resources"]["three"] = deployment(signal_transport="CFN_SIGNAL", input_values={"who": "three"})
        agent.start()
        assert stoker.heat("PUT", stack, {"template": machine}).status == 202
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE" and "three" in agent.lines(), 60)
    revisions = [each[SECTION]["revision"] for each in (first, second, third)]
    assert revisions == sorted(set(revisions))


def document_signed_after(stoker: Served, stack: str, revision: int) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def there() -> bool:
        found[:] = [document(stoker, stack, "one", "two")]
        return found[0][SECTION]["revision"] > revision

    stoker.until(there)
    return found[0]


def test_a_site_may_require_that_agents_verify(tmp_path) -> None:
    with served(tmp_path, "--require-signed-transports") as stoker:

        def made(agent: str | None, transport: str | None = "POLL_TEMP_URL") -> Any:
            name = f"s-{uuid.uuid4().hex[:8]}"
            said = stack_of(name, "object", "one")
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
