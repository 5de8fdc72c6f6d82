"""Stoker with a real Swift or Zaqar, and an agent that consists of HTTP requests."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clouds import write_clouds
from support.server import Answer, HeatClient, Served
from support.service_processes import Peer
from support.templates import config, deployment, server, template

CLIENT = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c"}
#: The report of a successful run without outputs.
RESULT = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}


def swift_flags(swift: Peer, folder: Path) -> tuple[str, ...]:
    """Return the options of the Stoker in ``folder`` for a Swift, with the login in its clouds.yaml."""
    auth = {"auth_url": f"{swift.url}/auth/v1.0", "username": "proj:user", "password": "pw"}
    write_clouds(folder, {"swift": {"auth": auth}})
    return ("--object-store", f"{swift.url}/v1/AUTH_proj", "--object-store-cloud", "swift")


def zaqar_flags(zaqar: Peer) -> tuple[str, ...]:
    """Return Stoker's command-line options for a Zaqar."""
    return ("--messaging", zaqar.url)


def ask(verb: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    """Send a request to any URL, with a JSON body. Error statuses are returned."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, dict(headers or {}), method=verb)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


def greeting(metadata: str, signal: str, who: str = "world", count: int = 1) -> dict[str, Any]:
    """Return a template: a server with one transport, and deployments with the other."""
    return greetings(metadata, {f"d{number}": signal for number in range(count)}, script="echo", who=who)


def greetings(
    metadata: str,
    signals: Mapping[str, str],
    *,
    script: str,
    who: str | None = None,
    machine: str = "machine",
    **properties: Any,
) -> dict[str, Any]:
    """
    Return a template: a server with a transport, and a deployment for each name with its signal transport.

    The input ``who`` of a deployment is its name by default, and the output ``said`` is an output of the stack.
    """
    host = server(machine, software_config_transport=metadata, **properties)
    resources = {"server": host, "config": config(script, inputs=("who",), outputs=("said",))}
    outputs: dict[str, Any] = {"agent": {"value": {"get_attr": ["server", "os_collect_config"]}}}
    for name, signal in signals.items():
        resources[name] = deployment(signal_transport=signal, input_values={"who": who or name})
        outputs[name] = {"value": {"get_attr": [name, "said"]}}
    return template(resources, outputs=outputs)


def sections(stoker: HeatClient, stack: str) -> dict[str, Any]:
    """Return what the configuration of the server's agent has for each collector."""
    known = stoker.outputs(stack)["agent"]
    return {name: known[name] for name in known["collectors"] if name != "local"}


def runs(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runs in a document as an agent reads them: ids and inputs."""
    return [
        {"id": each["id"], **{entry["name"]: entry["value"] for entry in each["inputs"]}}
        for each in document["deployments"]
    ]


def signature_headers(section: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the headers of who has no login but a signed URL, which names with ``prefix`` in ``section`` describe."""
    return {
        **CLIENT,
        "X-Project-Id": section[f"{prefix}project_id"],
        "URL-Paths": section[f"{prefix}url_paths"],
        "URL-Methods": section[f"{prefix}url_methods"],
        "URL-Expires": section[f"{prefix}url_expires"],
        "URL-Signature": section[f"{prefix}url_signature"],
    }


def log_in(login: Mapping[str, Any]) -> Answer:
    """Log in as the user of a server or a deployment, with what the agent is told of it."""
    user = {"id": login["user_id"], "password": login["password"]}
    scope = {"project": {"id": login["project_id"]}}
    auth = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}
    answer = ask("POST", f"{login['auth_url']}/auth/tokens", {"auth": auth})
    assert answer.status == 201, answer.raw
    return answer


@dataclass(frozen=True)
class QueueAgent:
    """An agent that uses Zaqar with the login in ``said``, and finds the service in the catalog."""

    said: Mapping[str, Any]

    @property
    def login(self) -> tuple[str, dict[str, str]]:
        """The URL of the messaging service, and headers."""
        got = log_in(self.said)
        service = next(entry for entry in got.body["token"]["catalog"] if entry["type"] == "messaging")
        token = {"X-Auth-Token": got.headers["X-Subject-Token"], "X-Project-Id": self.said["project_id"]}
        return service["endpoints"][0]["url"], {**CLIENT, **token}

    def pop(self, queue: str) -> list[Any]:
        """Remove and return the next message of a queue, as a list of at most one."""
        url, headers = self.login
        got = ask("DELETE", f"{url}/v2/queues/{queue}/messages?pop=1", headers=headers)
        return [message["body"] for message in got.body["messages"]] if got.status == 200 else []

    def post(self, queue: str, body: Any) -> int:
        """Post a message and return the status."""
        url, headers = self.login
        return ask("POST", f"{url}/v2/queues/{queue}/messages", {"messages": [{"body": body}]}, headers).status


def read_signed_queue(section: Mapping[str, str], **changes: str) -> Answer:
    """Read a queue by the signed URL in a section of an agent's configuration. ``changes``: of the headers."""
    url = f"{section['messaging_url']}/v2/queues/{section['queue_id']}/messages?echo=true"
    return ask("GET", url, headers={**signature_headers(section), **changes})


def until_document(stoker: Served, url: str, who: str) -> list[dict[str, Any]]:
    """Wait until all runs of the document at a signed URL are for ``who``, and return them."""

    def there() -> bool:
        got = ask("GET", url)
        entries = runs(got.body) if got.status == 200 and got.raw else []
        return bool(entries) and all(entry["who"] == who for entry in entries)

    stoker.until(there, 60)
    return runs(ask("GET", url).body)


def popped(stoker: Served, agent: QueueAgent, who: str) -> list[dict[str, Any]]:
    """Wait until the runs of the document in the server's queue are for ``who``, and return them."""
    got: list[Any] = []

    def there() -> bool:
        got.extend(agent.pop(agent.said["queue_id"]))
        return bool(got) and [entry["who"] for entry in runs(got[-1])] == [who]

    stoker.until(there, 60)
    return runs(got[-1])


def reporter(run: Mapping[str, Any]) -> QueueAgent:
    """Return an agent with the login in a run's inputs, which may report the run's result."""
    keys = ("auth_url", "user_id", "password", "project_id")
    return QueueAgent({name: run[f"deploy_{name}"] for name in keys})


def queues_of(zaqar: Peer, project: str) -> set[str]:
    """Return up to 20 names of a project's queues in a Zaqar without authentication."""
    answer = ask("GET", f"{zaqar.url}/v2/queues?limit=20", headers={**CLIENT, "X-Project-Id": project})
    return {queue["name"] for queue in answer.body["queues"]}
