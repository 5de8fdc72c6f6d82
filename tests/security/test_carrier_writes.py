"""Members may not write where documents and results are carried; whoever tries is in the audit log."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from stoker.objects import tempurl
from support.accounts import Account
from support.backends import CLIENT, ask, greeting, until_document
from support.server import Served
from support.templates import define, template

FORGED = json.dumps({"deployments": [{"id": "forged", "name": "x", "group": "script", "config": "#!/bin/sh\n"}]})


@dataclass
class Place:
    """A server's container and object (``path``), or its queue (``name``), and the stack that it belongs to."""

    stack: str
    server_id: str
    container: str
    path: str
    url: str


@pytest.fixture(scope="module")
def objects(stoker) -> Place:
    stack = stoker.create_stack("objects", greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL"))
    url = stoker.outputs(stack)["agent"]["request"]["metadata_url"]
    until_document(stoker, url, "world")
    path = urlsplit(url).path
    server = stoker.heat("GET", f"{stack}/resources/server").body["resource"]["physical_resource_id"]
    return Place(stack, server, path.rpartition("/")[0], path, url)


@pytest.fixture(scope="module")
def queue(stoker) -> str:
    stack = stoker.create_stack("queues", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
    return stoker.outputs(stack)["agent"]["zaqar"]["queue_id"]


def refusals(stoker: Served, server_id: str | None = None) -> list[dict[str, Any]]:
    entries = stoker.heat("GET", f"/audit?server={server_id}" if server_id else "/audit").body["audit"]
    return [each for each in entries if each["outcome"] == "REFUSED"]


def try_to_write(
    stoker: Served, member: Account, writes: list[tuple[str, str, Any, dict[str, str]]], server_id: str | None = None
) -> set[str]:
    """Send requests as the member, each of which is refused and audited. Return the actions in the audit log."""
    known = len(refusals(stoker, server_id))
    for verb, path, body, headers in writes:
        answer = member.request(verb, path, body, **headers)
        assert answer.status == 403, (verb, path, headers, answer.status, answer.raw)
        assert b"belongs to a server or a deployment" in answer.raw
    entries = refusals(stoker, server_id)[: -known or None]
    assert [each["actor"] for each in entries] == [member.name] * len(writes)
    return {each["action"] for each in entries}


def test_agents_containers_refuse_other_writers(stoker, member, objects):
    before = ask("GET", objects.url).raw
    writes: list[tuple[str, str, Any, dict[str, str]]] = [
        ("PUT", objects.path, FORGED.encode(), {}),
        ("PUT", f"{objects.container}/another", b"", {}),
        ("POST", objects.path, b"", {"X-Object-Meta-A": "1"}),
        ("DELETE", objects.path, None, {}),
        ("PUT", objects.container, b"", {"X-Container-Meta-Temp-URL-Key": "k"}),
        ("POST", objects.container, b"", {"X-Container-Meta-Temp-URL-Key": "k"}),
        ("DELETE", objects.container, None, {}),
    ]
    assert {"PUT container", "DELETE container"} <= try_to_write(stoker, member, writes, objects.server_id)
    assert ask("GET", objects.url).raw == before


def test_keys_of_accounts_give_no_access_to_agents_containers(stoker, member, objects):
    before = ask("GET", objects.url).raw
    account, key = objects.container.rpartition("/")[0], {"X-Account-Meta-Temp-URL-Key": "k"}
    assert member.request("POST", account, b"", **key).status == 204
    container, name = objects.path.split("/")[-2:]
    root = f"{stoker.url}/object-store"
    signed = tempurl.url(root, "k", "PUT", stoker.project, container, name, int(time.time()) + 60)
    assert ask("PUT", signed, {"deployments": []}).status == 403
    assert ask("GET", objects.url).raw == before


def test_agents_queues_refuse_other_writers(stoker, member, queue):
    path = f"/messaging/v2/queues/{queue}"
    forged = {"messages": [{"body": json.loads(FORGED), "ttl": 300}]}
    patch = [{"op": "add", "path": "/metadata/a", "value": "q"}]
    writes: list[tuple[str, str, Any, dict[str, str]]] = [
        ("PUT", path, {}, CLIENT),
        ("PATCH", path, patch, {**CLIENT, "Content-Type": "application/openstack-messaging-v2.0-json-patch"}),
        ("DELETE", path, None, CLIENT),
        ("POST", f"{path}/share", {"methods": ["POST"]}, CLIENT),
        ("POST", f"{path}/messages", forged, CLIENT),
        ("DELETE", f"{path}/messages?pop=1", None, CLIENT),
        ("DELETE", f"{path}/messages/{uuid.uuid4().hex}", None, CLIENT),
        ("POST", f"{path}/subscriptions", {"subscriber": "http://8.8.8.8/", "ttl": 3600}, CLIENT),
    ]
    try_to_write(stoker, member, writes)


@pytest.mark.parametrize("kind", ["OS::Zaqar::Queue", "OS::Zaqar::Subscription"])
def test_templates_cannot_write_to_agents_containers_and_queues(stoker, member: Account, queue, kind):
    said = {"name": queue} if kind.endswith("Queue") else {"queue_name": queue, "subscriber": "http://8.8.8.8/"}
    path = member.create_stack(f"steals-{uuid.uuid4().hex[:8]}", template({"it": define(kind, **said)}))
    reason = stoker.await_stack(path, "CREATE_FAILED")["stack_status_reason"]
    assert "belongs to a server or a deployment" in reason
    assert any(each["action"] == kind for each in refusals(stoker))


def test_events_cannot_be_sent_to_an_agents_queue(stoker, member, queue):
    sinks = {"event_sinks": [{"type": "zaqar-queue", "target": queue}]}
    nothing = template({"it": {"type": "OS::Heat::None"}})
    stoker.await_stack(member.create_stack(f"sinks-{uuid.uuid4().hex[:8]}", nothing, environment=sinks))
    assert any(each["action"] == "event_sinks" for each in refusals(stoker))


def test_the_writer_of_a_result_is_audited(stoker, objects):
    (run,) = until_document(stoker, objects.url, "world")
    answer = ask("PUT", run["deploy_signal_id"], {"deploy_status_code": 0})
    assert answer.status == 201, answer.raw
    stoker.await_stack(objects.stack)
    entries = [each for each in stoker.heat("GET", "/audit").body["audit"] if each["action"] == "signal by object"]
    assert [(each["actor"], each["outcome"]) for each in entries] == [("the agent of d0", "ALLOWED")]
