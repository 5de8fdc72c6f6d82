"""Hooks of the agent's program as root of a test machine, each as the child process that the agent starts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoker_agent.commands.build import build
from stoker_agent.hook_contract import MODE, RESULT_FILE, STATE
from support.machines import Machine

_PROGRAM, _RUNS, _STATE = "/opt/agent.pyz", "/run/hooks", "/var/lib/hooks"
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from stoker_agent.hook_contract import main; main(sys.argv[2])"


def run_hook(
    machine: Machine,
    folder: Path,
    group: str,
    entry: Mapping[str, Any],
    *,
    mode: str = "apply",
    environment: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> tuple[dict[str, Any], str, str]:
    """Return the report, standard output and standard error of a run. ``folder`` is for files of this host."""
    if not machine.exists(_PROGRAM):
        build(folder / "agent.pyz")
        machine.put(_PROGRAM, folder.joinpath("agent.pyz").read_bytes(), 0o755)
    working = f"{_RUNS}/{uuid.uuid4()}"
    machine.run(["mkdir", "-p", working])
    done = machine.run(
        ["python3", "-I", "-c", _CHILD, _PROGRAM, group],
        input=json.dumps(entry),
        check=False,
        timeout=timeout,
        environment={**(environment or {}), MODE: mode, STATE: _STATE, RESULT_FILE: f"{working}/result.json"},
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(machine.read(f"{working}/result.json"))
    machine.run(["rm", "-r", working])
    return report, done.stdout, done.stderr
