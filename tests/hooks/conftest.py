"""Runs one hook as the agent's child process, on this host or on a test machine."""

from __future__ import annotations

import os
import stat
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stoker_agent.hook_contract import MODE, RESULT_FILE, STATE
from stoker_agent.programs import Folders, program
from support.machine_hooks import run_hook
from support.machines import Machine
from support.tools import ANSIBLE, CFN_TOOLS, SALT

#: A tool gets this long; a busy machine is slow.
_PATIENCE_SECONDS = 280


@dataclass
class Outcome:
    """What a run reported, and what it printed."""

    report: dict[str, Any]
    stdout: str
    stderr: str

    @property
    def code(self) -> int:
        return int(self.report["deploy_status_code"])

    @property
    def changed(self) -> bool | None:
        return self.report.get("deploy_changed")

    @property
    def items(self) -> list[str]:
        return [change["item"] for change in self.report.get("deploy_changes", ())]


@dataclass
class Hook:
    """One group's hook with directories of its own."""

    group: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    number: int = 0

    def entry(
        self, config: Any, outputs: Any = (), options: Mapping[str, Any] | None = None, **inputs: Any
    ) -> dict[str, Any]:
        self.number += 1
        return {
            "id": f"1f0e7c52-0000-4000-8000-{self.number:012}",
            "name": "app",
            "group": self.group,
            "creation_time": "2026-01-01T00:00:00Z",
            "config": config,
            "options": dict(options or {}),
            "inputs": [{"name": name, "type": "String", "value": value} for name, value in inputs.items()],
            "outputs": [{"name": name, "type": "String"} for name in outputs],
        }

    def run(self, entry: Mapping[str, Any], mode: str = "apply") -> Outcome:
        """Run the hook as the agent does: a child process whose output is the tool's."""
        folder = self.folder / "runs" / entry["id"]
        folder.mkdir(parents=True, exist_ok=True)
        child = program(entry, self.folder / "no-hooks", Folders.of(folder), mode)
        kept = {name: value for name, value in os.environ.items() if name not in (MODE, RESULT_FILE, STATE)}
        done = subprocess.run(
            child.argv,
            input=child.stdin,
            env={**kept, **self.environment, **child.environment},
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return Outcome({"deploy_status_code": done.returncode, **child.finish(done.returncode)}, stdout, stderr)

    def tool(self, name: str, script: str) -> Path:
        """Put a program first in the hook's PATH; ``script`` is its text."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.environment["PATH"] = f"{path.parent}{os.pathsep}{os.environ['PATH']}"
        return path

    def use_salt(self, salt_call: Path, folder: Path) -> None:
        """Run this Salt, with all files of its minion below ``folder``."""
        minion = folder / "minion"
        places = {"root_dir": "", "cachedir": "cache", "pki_dir": "pki", "sock_dir": "sock", "log_file": "log/minion"}
        lines = [f"{name}: {folder / 'salt' / place}" for name, place in places.items()]
        minion.write_text("\n".join(["id: here", "master_type: disable", *lines]) + "\n")
        self.environment.update(HEAT_SALT_CMD=str(salt_call), SALT_MINION_CONFIG=str(minion))


def run_installed(
    entry: Mapping[str, Any], hooks: Path, folder: Path, environment: Mapping[str, str], mode: str = "apply"
) -> dict[str, Any]:
    """Run an executable of the directory ``hooks`` as the agent does, and return the values of its report."""
    folder.mkdir(parents=True, exist_ok=True)
    child = program(entry, hooks, Folders.of(folder), mode)
    assert child.argv == [str(hooks / entry["group"])]
    with (folder / child.stdout).open("wb") as output:
        done = subprocess.run(
            child.argv,
            input=child.stdin,
            env={**environment, **child.environment},
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    return {"deploy_status_code": done.returncode, **child.finish(done.returncode)}


@dataclass
class MachineHook(Hook):
    """A hook that runs as root of a test machine."""

    machine: Machine = field(kw_only=True)

    def entry(self, config: Any, *rest: Any, **inputs: Any) -> dict[str, Any]:
        """As ``Hook.entry``. Tests share machines, so each has a deployment of its own."""
        return {**super().entry(config, *rest, **inputs), "name": self.folder.name, "id": str(uuid.uuid4())}

    def run(self, entry: Mapping[str, Any], mode: str = "apply") -> Outcome:
        return Outcome(
            *run_hook(
                self.machine,
                self.folder,
                self.group,
                entry,
                mode=mode,
                environment=self.environment,
                timeout=_PATIENCE_SECONDS,
            )
        )


@pytest.fixture
def machine_hook(request: pytest.FixtureRequest, machine: Machine, tmp_path: Path) -> MachineHook:
    """The hook of the module's ``GROUP`` in the module's fixture ``machine``."""
    return MachineHook(request.module.GROUP, tmp_path, machine=machine)


@pytest.fixture
def hook(request: pytest.FixtureRequest, tmp_path: Path) -> Hook:
    """The hook of the group that the test's parameter or the module's ``GROUP`` names."""
    return Hook(getattr(request, "param", None) or request.module.GROUP, tmp_path)


@pytest.fixture(scope="session")
def ansible_playbook() -> Path:
    """The program of the installed ansible-core."""
    return ANSIBLE.require() / "bin" / "ansible-playbook"


@pytest.fixture(scope="session")
def salt_call() -> Path:
    """The program of the installed salt."""
    return SALT.require() / "bin" / "salt-call"


@pytest.fixture(scope="session")
def cfn_tools() -> Path:
    """The folder with heat-cfntools and os-apply-config, for machines."""
    return CFN_TOOLS.require()
