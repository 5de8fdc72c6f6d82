#!/usr/bin/env python3
"""
Hook of the group ``script``: runs an executable text with the inputs in its environment.

Outputs are the files ``$heat_outputs_path.NAME``. As an executable, this file follows the contract of heat-agents: the
config as JSON on standard input, the result as JSON on standard output. It imports nothing from the agent, so it can be
copied to the hook directory of another agent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

GROUP = "script"

#: Largest number of bytes of an output that the hook reads.
_LONGEST = 1024 * 1024

_WORKING = "/var/lib/heat-config/heat-config-script"
_OUTPUTS = "/var/run/heat-config/heat-config-script"


def command(config: Mapping[str, Any], working: Path) -> List[str]:
    """
    Write the script into ``working`` and return the argv to execute.

    ``/bin/sh`` runs a text without an interpreter line. Raises ValueError if the config is not text.
    """
    text = config.get("config") or ""
    if not isinstance(text, str):
        raise ValueError("the config of group script must be text")  # noqa: TRY004 — callers report ValueError
    path = working / "script"
    handle = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    return [str(path)] if text.startswith("#!") else ["/bin/sh", str(path)]


def environment(config: Mapping[str, Any], outputs: Path) -> Dict[str, str]:
    """
    Return the inputs and ``heat_outputs_path`` as environment variables.

    Raises ValueError for an input that cannot be an environment variable.
    """
    variables = {}
    for entry in config.get("inputs") or ():
        name, value = entry["name"], as_text(entry.get("value"))
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"input {name!r} cannot be passed to a script")
        variables[name] = value
    variables["heat_outputs_path"] = str(outputs)
    return variables


def as_text(value: Any) -> str:
    """Return strings unchanged, None as "", and other values as JSON, because an environment holds only text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def read_outputs(config: Mapping[str, Any], outputs: Path) -> Dict[str, str]:
    """Return the content of the declared outputs by name, up to 1 MiB each."""
    values = {}
    for entry in config.get("outputs") or ():
        name = entry["name"]
        path = Path(f"{outputs}.{name}")
        if not set(name) & {"/", "\0"} and path.is_file():
            with path.open("rb") as file:  # a longer output exceeds the report's limit in any case
                values[name] = file.read(_LONGEST).decode("utf-8", "replace")
    return values


def main() -> None:
    """Run as an executable: read the config from standard input and print the result."""
    config = json.load(sys.stdin)
    working = Path(os.environ.get("HEAT_SCRIPT_WORKING", _WORKING), config["id"])
    folder = Path(os.environ.get("HEAT_SCRIPT_OUTPUTS", _OUTPUTS))
    for path in (working, folder):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    outputs = folder / config["id"]
    done = subprocess.run(
        command(config, working),
        env={**os.environ, **environment(config, outputs)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    result: Dict[str, Any] = dict(read_outputs(config, outputs))
    result["deploy_stdout"] = done.stdout.decode("utf-8", "replace")
    result["deploy_stderr"] = done.stderr.decode("utf-8", "replace")
    result["deploy_status_code"] = done.returncode
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
