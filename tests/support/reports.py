"""Sends reports as heat-config-notify does, according to the inputs of a derived config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.identity import stack_users
from stoker.identity.stack_users import StackUsers
from support.server import Served

CLIENT = {"Client-ID": "8d7dbfb8-5b0c-4e6a-9a3c-1f0f3b4f8f52"}


def report(stoker: Served, derived: Mapping[str, Any], said: Mapping[str, Any] | None = None) -> None:
    """Report a result by the signal transport in the inputs of ``derived``."""
    said = said or {"deploy_status_code": 0}
    inputs = {entry["name"]: entry["value"] for entry in derived["inputs"]}
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


def document(stoker: Served, server_id: str) -> list[dict[str, Any]]:
    """Return the derived configs of a server without Stoker's agent, with secrets, as the server's user reads them."""
    secret = (stoker.state_dir / "keys" / "site.key").read_bytes().strip()
    login = {
        "deploy_user_id": stack_users.user_id(server_id),
        "deploy_password": StackUsers(secret).password(server_id),
        "deploy_project_id": stoker.project,
    }
    path = f"/v1/{stoker.project}/software_deployments/metadata/{server_id}"
    answer = stoker.request("GET", path, headers=token(stoker, login))
    assert answer.status == 200, answer.raw
    metadata: list[dict[str, Any]] = answer.body["metadata"]
    return metadata


def token(stoker: Served, inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the header with a token for the login in ``inputs``."""
    user = {"id": inputs["deploy_user_id"], "password": inputs["deploy_password"]}
    scope = {"project": {"id": inputs["deploy_project_id"]}}
    auth = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}
    answer = stoker.request("POST", "/identity/v3/auth/tokens", {"auth": auth})
    assert answer.status == 201, answer.raw
    return {"X-Auth-Token": answer.headers["X-Subject-Token"]}
