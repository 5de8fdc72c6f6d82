"""The agents' own protocol, spoken by hand to a real server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from support.server import Answer, Served

_count = iter(range(1_000_000))


@dataclass
class SpokenAgent:
    stoker: Served
    id: str
    name: str
    key: str

    def call(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        said = {"Authorization": f"Bearer {self.key}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.stoker.request(verb, f"/agent/v1{path}", body, said)

    def document(self, wait: int = 0, etag: str = "", **headers: str) -> Answer:
        if etag:
            headers["If_None_Match"] = etag
        return self.call("GET", f"/document?wait={wait}", **headers)

    def entries(self) -> list[dict[str, Any]]:
        return self.document().body["deployments"]

    def log(self, run: str, offset: int, data: bytes, stream: str = "stdout", more: str = "") -> Answer:
        return self.call("POST", f"/runs/{run}/logs?stream={stream}&offset={offset}{more}", data)


def enrol(stoker: Served, name: str | None = None) -> tuple[dict[str, Any], str]:
    answer = stoker.heat("POST", "/servers", {"name": name or f"server-{next(_count)}"})
    assert answer.status == 201, answer.raw
    return answer.body["server"], answer.body["enrolment"]["token"]


def trade(stoker: Served, token: str, instance: str = "i") -> Answer:
    said = {"token": token, "instance": instance, "hostname": "h", "agent": {"version": "1", "hooks": ["script"]}}
    return stoker.request("POST", "/agent/v1/enroll", said)


def spoken_agent(stoker: Served) -> SpokenAgent:
    server, token = enrol(stoker)
    got = trade(stoker, token)
    assert got.status == 201, got.raw
    assert got.body["poll_wait"] == 50
    return SpokenAgent(stoker, got.body["server_id"], server["name"], got.body["key"])


def deploy(stoker: Served, server_id: str, config: str = "#!/bin/sh\n", **more: Any) -> dict[str, Any]:
    said = {"name": "c", "group": "script", "config": config, "outputs": [{"name": "result"}]}
    said |= {name: more.pop(name) for name in ("options", "group") if name in more}
    made = stoker.heat("POST", "/software_configs", said).body["software_config"]
    answer = stoker.heat(
        "POST",
        "/software_deployments",
        {"config_id": made["id"], "server_id": server_id, "signal_transport": "STOKER_SIGNAL", **more},
    )
    assert answer.status in (200, 201), answer.raw
    return answer.body["software_deployment"]


def shown(stoker: Served, deployment: Mapping[str, Any]) -> dict[str, Any]:
    return stoker.heat("GET", f"/software_deployments/{deployment['id']}").body["software_deployment"]
