"""What agents send: logins, and reports as heat-config-notify sends them, by the inputs of a derived config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.identity import stack_users
from stoker.identity.stack_users import StackUsers
from support.backends import CLIENT, ask, log_in
from support.server import Served

#: The verb, the URL, the body and the headers of a request.
Request = tuple[str, str, Any, Mapping[str, str]]


def report(stoker: Served, derived: Mapping[str, Any], said: Mapping[str, Any] | None = None) -> None:
    """Report a result by the signal transport in the inputs of ``derived``."""
    inputs = {entry["name"]: entry["value"] for entry in derived["inputs"]}
    request = make_report(stoker.url, inputs, said or {"deploy_status_code": 0})
    answer = ask(*request)
    assert answer.status in (200, 201), answer.raw


def make_report(url: str, inputs: Mapping[str, Any], said: Mapping[str, Any]) -> Request:
    """Return the request that reports a result to the Stoker at ``url``."""
    if "deploy_signal_id" in inputs:
        return inputs.get("deploy_signal_verb", "POST"), inputs["deploy_signal_id"], said, {}
    headers = token_of({name.removeprefix("deploy_"): value for name, value in inputs.items()})
    if "deploy_queue_id" in inputs:
        queue = f"{url}/messaging/v2/queues/{inputs['deploy_queue_id']}/messages"
        return "POST", queue, {"messages": [{"body": said, "ttl": 60}]}, {**headers, **CLIENT}
    resource = f"{inputs['deploy_stack_id']}/resources/{inputs['deploy_resource_name']}"
    return "POST", f"{url}/v1/{inputs['deploy_project_id']}/stacks/{resource}/signal", said, headers


def document(stoker: Served, server_id: str) -> list[dict[str, Any]]:
    """Return the derived configs of a server without Stoker's agent, with secrets, as the server's user reads them."""
    secret = (stoker.state_dir / "keys" / "site.key").read_bytes().strip()
    login = {
        "auth_url": f"{stoker.url}/identity/v3",
        "user_id": stack_users.user_id(server_id),
        "password": StackUsers(secret).password(server_id),
        "project_id": stoker.project,
    }
    path = f"/v1/{stoker.project}/software_deployments/metadata/{server_id}"
    answer = stoker.request("GET", path, headers=token_of(login))
    assert answer.status == 200, answer.raw
    metadata: list[dict[str, Any]] = answer.body["metadata"]
    return metadata


def token_of(login: Mapping[str, Any]) -> dict[str, str]:
    """Return the header with a token of the user of a server or a deployment."""
    return {"X-Auth-Token": log_in(login).headers["X-Subject-Token"]}
