"""Reports as heat-config-notify sends them, by what a derived config's inputs say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.server import Served

CLIENT = {"Client-ID": "8d7dbfb8-5b0c-4e6a-9a3c-1f0f3b4f8f52"}


def report(stoker: Served, derived: Mapping[str, Any], said: Mapping[str, Any] | None = None) -> None:
    said = said or {"deploy_status_code": 0}
    inputs = {each["name"]: each["value"] for each in derived["inputs"]}
    if "deploy_signal_id" in inputs:
        url = inputs["deploy_signal_id"].removeprefix(stoker.url)
        answer = stoker.request(inputs["deploy_signal_verb"], url, said)
    elif "deploy_queue_id" in inputs:
        url = f"/messaging/v2/queues/{inputs['deploy_queue_id']}/messages"
        answer = stoker.request(
            "POST", url, {"messages": [{"body": said, "ttl": 60}]}, {**token(stoker, inputs), **CLIENT}
        )
    else:
        resource = f"{inputs['deploy_stack_id']}/resources/{inputs['deploy_resource_name']}"
        url = f"/v1/{inputs['deploy_project_id']}/stacks/{resource}/signal"
        answer = stoker.request("POST", url, said, token(stoker, inputs))
    assert answer.status in (200, 201), answer.raw


def token(stoker: Served, inputs: Mapping[str, Any]) -> dict[str, str]:
    user = {"id": inputs["deploy_user_id"], "password": inputs["deploy_password"]}
    scope = {"project": {"id": inputs["deploy_project_id"]}}
    auth = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}
    answer = stoker.request("POST", "/identity/v3/auth/tokens", {"auth": auth})
    assert answer.status == 201, answer.raw
    return {"X-Auth-Token": answer.headers["X-Subject-Token"]}
