"""Templates in few words."""

from __future__ import annotations

from typing import Any

VERSION = "2018-08-31"


def template(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"heat_template_version": VERSION, "resources": resources, **more}


def config(text: str = "#!/bin/sh\necho", *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = (), **more: Any):
    return {
        "type": "OS::Heat::SoftwareConfig",
        "properties": {
            "group": "script",
            "config": text,
            "inputs": [{"name": name} for name in inputs],
            "outputs": [{"name": name} for name in outputs],
            **more,
        },
    }


def server(name: str = "machine") -> dict[str, Any]:
    return {"type": "OS::Heat::DeployedServer", "properties": {"name": name}}


def deployment(config: str = "config", server: str = "server", *, after: tuple[str, ...] = (), **properties: Any):
    made: dict[str, Any] = {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {"config": {"get_resource": config}, "server": {"get_resource": server}, **properties},
    }
    if after:
        made["depends_on"] = list(after)
    return made


def chain(length: int, **properties: Any) -> dict[str, Any]:
    """config, server, and deployments d0 … that wait for each other."""
    resources: dict[str, Any] = {"config": config(outputs=("result",)), "server": server()}
    for i in range(length):
        resources[f"d{i}"] = deployment(after=(f"d{i - 1}",) if i else (), **properties)
    return template(resources)
