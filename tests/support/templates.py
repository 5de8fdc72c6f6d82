"""Short builders of templates."""

from __future__ import annotations

from typing import Any

VERSION = "2018-08-31"
#: The resource that receives the signals of a wait condition.
HANDLE: dict[str, Any] = {"type": "OS::Heat::WaitConditionHandle"}


def document(version: str = VERSION, **sections: Any) -> dict[str, Any]:
    """Return a template with these sections."""
    return {"heat_template_version": version, **sections}


def template(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a template with these resources."""
    return document(resources=resources, **more)


def define(kind: str, **properties: Any) -> dict[str, Any]:
    """Return a resource of any type."""
    return {"type": kind, "properties": properties}


def config(text: str = "#!/bin/sh\necho", *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = (), **more: Any):
    """Return a software config."""
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


def server(name: str = "machine", **properties: Any) -> dict[str, Any]:
    """Return a deployed server."""
    return define("OS::Heat::DeployedServer", name=name, **properties)


def deployment(config: str = "config", server: str = "server", *, after: tuple[str, ...] = (), **properties: Any):
    """Return a deployment; ``after`` are the names of resources on which it depends."""
    definition: dict[str, Any] = {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {"config": {"get_resource": config}, "server": {"get_resource": server}, **properties},
    }
    if after:
        definition["depends_on"] = list(after)
    return definition


def deployment_group(config: str = "config", **properties: Any) -> dict[str, Any]:
    """Return a group of deployments, whose ``servers`` or ``labels`` are among the properties."""
    return define("OS::Heat::SoftwareDeploymentGroup", config={"get_resource": config}, **properties)


def on(server: Any, config: str = "config", **properties: Any) -> dict[str, Any]:
    """Return a deployment on the server with this id."""
    return define("OS::Heat::SoftwareDeployment", config={"get_resource": config}, server=server, **properties)


def wait(handle: str = "handle", **properties: Any) -> dict[str, Any]:
    """Return a wait condition, whose handle is the resource ``handle``."""
    return define("OS::Heat::WaitCondition", **{"handle": {"get_resource": handle}, "timeout": 60, **properties})


#: The data in the last signal with the id 1 to the handle of the wait condition ``wait``, which change at any time.
LIVE = {"str_split": ['"', {"get_attr": ["wait", "data"]}, 3]}


def chain(length: int, **properties: Any) -> dict[str, Any]:
    """Return a template with a config, a server, and deployments d0 … that depend on each other in order."""
    resources: dict[str, Any] = {"config": config(outputs=("result",)), "server": server()}
    for i in range(length):
        resources[f"d{i}"] = deployment(after=(f"d{i - 1}",) if i else (), **properties)
    return template(resources)
