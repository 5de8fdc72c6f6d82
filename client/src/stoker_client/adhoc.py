"""Runs a script on a server once, with a temporary config and deployment."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker_client.client import Client
from stoker_client.shapes import Deployment

SHEBANG = "#!/bin/sh\n"


def script_of(command: Sequence[str]) -> str:
    """Return the script for a command line: one word is a line of shell, several are a program and its arguments."""
    line = command[0] if len(command) == 1 else shlex.join(command)
    return f"{SHEBANG}{line}\n"


def with_shebang(script: str) -> str:
    """Return ``script``, with an interpreter line for ``sh`` if it has none."""
    return script if script.startswith("#!") else SHEBANG + script


@dataclass(frozen=True)
class AdHoc:
    """One run, and the objects created for it on the service."""

    client: Client
    config_id: str
    deployment: Deployment

    @property
    def id(self) -> str:
        """The deployment's id."""
        return self.deployment["id"]

    def delete(self) -> None:
        """Delete the deployment, its derived config and the config."""
        self.client.deployments.delete(self.id)
        self.client.configs.delete_derived(self.deployment["config_id"])
        self.client.configs.delete(self.config_id)


def start(
    client: Client, server_id: str, script: str, *, name: str, inputs: Mapping[str, str], timeout: int | None
) -> AdHoc:
    """
    Deploy ``script`` to a server. If the service refuses the deployment, the config is deleted again.

    ``name`` names both objects. ``inputs`` are the script's environment variables. ``timeout`` is in seconds.
    """
    declared = [{"name": key} for key in inputs]
    config = client.configs.create({"name": name, "group": "script", "config": script, "inputs": declared})
    body = {
        "name": name,
        "config_id": config["id"],
        "server_id": server_id,
        "input_values": dict(inputs),
        "action": "CREATE",
        "signal_transport": "STOKER_SIGNAL",
    }
    try:
        deployment = client.deployments.create(body | ({"timeout": timeout} if timeout else {}))
    except BaseException:
        client.configs.delete(config["id"])
        raise
    return AdHoc(client, config["id"], deployment)


def exit_code(deployment: Deployment) -> int:
    """Return the exit code for an ended deployment: the script's code if it states a failure, else 0 or 1."""
    return exit_code_of(deployment["status"], (deployment.get("output_values") or {}).get("deploy_status_code"))


def exit_code_of(status: str | None, status_code: Any) -> int:
    """Return the exit code for a run with the status ``status`` and the reported ``status_code``, None if unknown."""
    if status == "COMPLETE":
        return 0
    try:
        code = int(status_code or 0)
    except (TypeError, ValueError):
        return 1
    if code < 0:
        return min(128 - code, 255)  # killed by a signal; the code follows the convention of shells
    return code if 0 < code < 256 else 1
