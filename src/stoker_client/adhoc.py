"""Running a script on a server once: a config, a deployment of it, and nothing left of either afterwards."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker_client.client import Client
from stoker_client.shapes import Deployment

SHEBANG = "#!/bin/sh\n"


def script_of(command: Sequence[str]) -> str:
    """The script for a command line: one word is a line of shell, several are a program and its arguments."""
    line = command[0] if len(command) == 1 else shlex.join(command)
    return f"{SHEBANG}{line}\n"


def with_shebang(script: str) -> str:
    """``script``, for ``sh`` unless it says what it is for: without that line no system can start it."""
    return script if script.startswith("#!") else SHEBANG + script


@dataclass(frozen=True)
class AdHoc:
    """One run and what it made on the service."""

    client: Client
    config_id: str
    deployment: Deployment

    @property
    def id(self) -> str:
        """The deployment's id."""
        return self.deployment["id"]

    def delete(self) -> None:
        """Take away the deployment, the config derived for it, and the config."""
        self.client.deployments.delete(self.id)
        self.client.configs.delete_derived(self.deployment["config_id"])
        self.client.configs.delete(self.config_id)


def start(
    client: Client, server_id: str, script: str, *, name: str, inputs: Mapping[str, str], timeout: int | None
) -> AdHoc:
    """Deploy ``script`` to a server. If that is refused, no config stays behind."""
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
    """The exit code for a finished deployment: the script's own when it has one that says failure, else 0 or 1."""
    return exit_code_of(deployment["status"], (deployment.get("output_values") or {}).get("deploy_status_code"))


def exit_code_of(status: str | None, said: Any) -> int:
    """The same for a run that ended as ``status`` and, as far as anybody knows, with the code ``said``."""
    if status == "COMPLETE":
        return 0
    try:
        code = int(said or 0)
    except (TypeError, ValueError):
        return 1
    if code < 0:
        return min(128 - code, 255)  # killed by a signal, said as shells say it
    return code if 0 < code < 256 else 1
