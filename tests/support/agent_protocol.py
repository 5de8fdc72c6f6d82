"""An agent without behavior: tests send its requests of the agent API to a real server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from support.server import Answer, HeatClient, Served

_count = iter(range(1_000_000))


@dataclass
class SpokenAgent:
    """An enrolled server and its key, for single requests."""

    stoker: Served
    id: str
    name: str
    key: str

    def call(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request of the agent API. Underscores in the names of ``headers`` become hyphens."""
        all_headers = {"Authorization": f"Bearer {self.key}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.stoker.request(verb, f"/agent/v1{path}", body, all_headers)

    def document(self, wait: int = 0, etag: str = "", **headers: str) -> Answer:
        """Poll the document."""
        if etag:
            headers["If_None_Match"] = etag
        return self.call("GET", f"/document?wait={wait}", **headers)

    def entries(self) -> list[dict[str, Any]]:
        """Return the runs in the document. Polls again if a poll of the server's real agent has superseded this one."""
        while (document := self.document().body) is None:
            pass
        return document["deployments"]

    def finish(self, run: str, code: int | None = 0, **outputs: Any) -> Answer:
        """Send the result of a run, by default a success."""
        return self.call("POST", f"/runs/{run}/signal", {"deploy_status_code": code, **outputs})

    def log(self, run: str, offset: int, data: bytes, stream: str = "stdout", more: str = "") -> Answer:
        """Send output of a run. ``more`` is appended to the query."""
        return self.call("POST", f"/runs/{run}/logs?stream={stream}&offset={offset}{more}", data)


def enroll(stoker: Served, name: str | None = None) -> tuple[dict[str, Any], str]:
    """Create a server. Return the server and its enrollment token."""
    answer = stoker.heat("POST", "/servers", {"name": name or f"server-{next(_count)}"})
    assert answer.status == 201, answer.raw
    return answer.body["server"], answer.body["enrollment"]["token"]


def trade(stoker: Served, token: str, instance: str = "i") -> Answer:
    """Exchange an enrollment token for a key."""
    body = {"token": token, "instance": instance, "hostname": "h", "agent": {"version": "1", "hooks": ["script"]}}
    return stoker.request("POST", "/agent/v1/enroll", body)


def spoken_agent(stoker: Served) -> SpokenAgent:
    """Enroll a new server."""
    server, token = enroll(stoker)
    got = trade(stoker, token)
    assert got.status == 201, got.raw
    assert got.body["poll_wait"] == 30
    return SpokenAgent(stoker, got.body["server_id"], server["name"], got.body["key"])


def deploy(stoker: HeatClient, server_id: str, config: Any = "#!/bin/sh\n", **more: Any) -> dict[str, Any]:
    """Create a config and deploy it to a server. Return the deployment."""
    body = {name: more.pop(name) for name in ("name", "options", "group", "inputs") if name in more}
    id = stoker.create_config(config, outputs=[{"name": "result"}], **body)
    more = {"signal_transport": "STOKER_SIGNAL", **more}
    return stoker.create("software_deployments", config_id=id, server_id=server_id, **more)


def shown(stoker: HeatClient, deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the current state of a deployment."""
    return stoker.heat("GET", f"/software_deployments/{deployment['id']}").body["software_deployment"]
