"""A project with one object of each type that a path of any API can name, and ids of objects that do not exist."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from support.accounts import Account
from support.agent_protocol import trade
from support.server import Answer
from support.templates import HANDLE, define, template

CLIENT_ID = str(uuid.uuid4())
_NAME = "others-own"


@dataclass(frozen=True)
class Contents:
    """
    The objects of a project.

    ``names`` has a value for each ``{name}`` in a route's path. ``secret`` is a text that is in values, never in paths.
    """

    owner: Account
    names: Mapping[str, str]
    secret: str
    #: The value of the stack's hidden parameter, which no answer contains.
    hidden: str
    agent_key: str


def fill_project(owner: Account) -> Contents:
    """Create all objects. ``owner`` is a member of an empty project."""
    secret, hidden = f"secret-{uuid.uuid4().hex}", f"hidden-{uuid.uuid4().hex}"
    server, key = _enroll(owner)
    config = owner.create("software_configs", name=_NAME, group="script", config=f"# {secret}")
    run = {"config_id": config["id"], "input_values": {"i": secret}}
    deployment = owner.create("software_deployments", server_id=server, **run)
    waiting = {"status": "IN_PROGRESS", "status_reason": secret}
    assert owner.heat("PUT", f"/software_deployments/{deployment['id']}", waiting).status == 200
    assert owner.heat("POST", "/checks", {"servers": [server]}).status == 202
    trigger = {"config_id": config["id"], "servers": [server]}
    schedule = {"name": _NAME, "trigger": trigger, "cron": "0 2 1 1 *", "timezone": "UTC"}
    stack = _stack(owner, secret, hidden)
    names = {
        "project": owner.project,
        "config_id": deployment["config_id"],
        "deployment_id": deployment["id"],
        "stream": "stdout",
        "trigger_id": owner.create("software_triggers", **trigger)["id"],
        "schedule_id": owner.create("software_schedules", **schedule)["id"],
        **_artifacts(owner, secret),
        "server": server,
        "server_id": server,
        "enrollment": owner.create("enrollments", limit=2)["id"],
        "relay": owner.create("relays", name=_NAME, url="http://relay.example:8005")["id"],
        **stack,
        **_identity(owner),
        **_queue(owner, secret),
        **_objects(owner, secret),
        "arn": quote(f"arn:openstack:heat::{owner.project}:stacks"),
        "type_name": "OS::Heat::Value",
        "version": "heat_template_version.2018-08-31",
        "page": "servers",
        "asset_name": "index.js",
        "token": f"signal.{uuid.uuid4()}.{'0' * 64}",
    }
    return Contents(owner, names, secret, hidden, key)


def _artifacts(owner: Account, secret: str) -> dict[str, str]:
    content = base64.b64encode(f"#!/bin/sh\n# {secret}\n".encode()).decode()
    hook = owner.create("hooks", name=_NAME, content=content)
    text = (
        f"stoker_catalog_version: 1\nname: {_NAME}\nversion: 1\ndescription: {secret}\ngroup: script\n"
        "config: '#!/bin/sh'\n"
    )
    assert _ok(owner.heat("POST", "/catalog", {"text": text})).body["entry"]["version"] == hook["version"]
    return {"hook_name": _NAME, "entry_name": _NAME, "number": str(hook["version"]), "sha256": hook["sha256"]}


#: Names for types of objects, not for objects of a project.
COMMON = (
    *("project", "account", "type_name", "version", "number", "role_id", "domain_id", "arn", "token"),
    *("service_id", "endpoint_id", "region_id", "page", "asset_name"),
)


def absent_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return ids and names of the same form that no object has."""
    return {name: value if name in COMMON else _absent(value) for name, value in names.items()}


def _absent(value: str) -> str:
    try:
        fresh = uuid.uuid4()
        return fresh.hex if len(uuid.UUID(value).hex) == len(value) else str(fresh)
    except ValueError:
        return f"{value}-absent" if not value.isdecimal() else str(int(value) + 1_000_000)


def _enroll(owner: Account) -> tuple[str, str]:
    created = _ok(owner.heat("POST", "/servers", {"name": _NAME})).body
    key = _ok(trade(owner.stoker, created["enrollment"]["token"])).body["key"]
    return created["server"]["id"], key


def _stack(owner: Account, secret: str, hidden: str) -> dict[str, str]:
    content = template(
        {"value": define("OS::Heat::Value", value=secret), "handle": HANDLE},
        description=secret,
        parameters={"hidden": {"type": "string", "hidden": True}},
        outputs={"shown": {"value": secret}},
    )
    path = owner.create_stack(_NAME, content, parameters={"hidden": hidden})
    snapshot = _ok(owner.heat("POST", f"{path}/snapshots", {"name": secret})).body["id"]
    events = _ok(owner.heat("GET", f"{path}/resources/value/events")).body["events"]
    return {
        "stack_name": _NAME,
        "stack_id": path.rpartition("/")[2],
        "resource_name": "value",
        "output_key": "shown",
        "snapshot_id": snapshot,
        "event_id": events[0]["id"],
    }


def _identity(owner: Account) -> dict[str, str]:
    user = f"/identity/v3/users/{owner.user_id}"
    credential = _ok(
        owner.request("POST", f"{user}/application_credentials", {"application_credential": {"name": _NAME}})
    ).body["application_credential"]
    return {
        "project_id": owner.project,
        "user_id": owner.user_id,
        "role_id": "member",
        "credential_id": credential["id"],
        "domain_id": "default",
        "service_id": "identity",
        "endpoint_id": "identity-public",
        "region_id": "RegionOne",
    }


def _queue(owner: Account, secret: str) -> dict[str, str]:
    def call(verb: str, path: str, body: object = None) -> Answer:
        return owner.request(verb, f"/messaging/v2/queues/{_NAME}{path}", body, **{"Client-ID": CLIENT_ID})

    _ok(call("PUT", "", {}))
    posted = _ok(call("POST", "/messages", {"messages": [{"ttl": 3600, "body": secret}] * 2})).body["resources"]
    # A public address without requests, because nothing is posted to the queue afterwards.
    subscription = _ok(
        call("POST", "/subscriptions", {"subscriber": "https://93.184.216.34/", "ttl": 3600, "options": {}})
    )
    return {
        "queue": _NAME,
        "message_id": posted[1].rpartition("/")[2],
        "subscription_id": subscription.body["subscription_id"],
    }


def _objects(owner: Account, secret: str) -> dict[str, str]:
    container = f"/object-store/v1/AUTH_{owner.project}/{_NAME}"
    _ok(owner.request("PUT", container, b""))
    _ok(owner.request("PUT", f"{container}/object", secret.encode()))
    return {"account": f"AUTH_{owner.project}", "container": _NAME, "object": "object"}


def _ok(answer: Answer) -> Answer:
    assert 200 <= answer.status < 300, answer.raw
    return answer
