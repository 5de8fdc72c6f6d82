"""
The agent of OpenStack's images: os-collect-config, os-refresh-config, os-apply-config and heat-agents' hooks.

All programs are the real releases from PyPI, configured to use a folder instead of the root directory.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.agents import collect_config
from support.installations import Installation, run
from support.processes import running

_RELEASE, _ZAQARCLIENT = "heat-agents==13.0.0", "python-zaqarclient==3.0.1"
_BIN = Path(sys.executable).parent


def _build(folder: Path) -> None:
    """Unpack the release as ``heat-agents``: its scripts and hooks, which the Python package does not install."""
    pip = (sys.executable, "-m", "pip")
    run(*pip, "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder), _RELEASE)
    # The program that posts results to queues uses an API version that newer clients no longer support.
    run(*pip, "install", "-q", "--no-deps", "--target", str(folder / "clients"), _ZAQARCLIENT)
    shutil.unpack_archive(next(folder.glob("heat*agents-*.tar.gz")), folder)
    next(path for path in folder.glob("heat*agents-*") if path.is_dir()).rename(folder / "heat-agents")


HEAT_AGENTS = Installation(_RELEASE, _build)


@dataclass(frozen=True)
class UpstreamAgent:
    """A running agent with its files below ``folder``."""

    folder: Path

    @property
    def configuration(self) -> Path:
        return self.folder / "root" / "etc" / "os-collect-config.conf"

    @property
    def log(self) -> str:
        return self.folder.joinpath("agent.log").read_text()


@contextmanager
def upstream_agent(folder: Path, release: Path, sections: Mapping[str, Mapping[str, Any]]) -> Iterator[UpstreamAgent]:
    """Yield a running agent. ``sections`` are its initial sections of os-collect-config."""
    agent, root = UpstreamAgent(folder), folder / "root"
    environment = _install(root, release)
    collect_config(agent.configuration, sections).chmod(0o600)
    command = [
        str(_BIN / "os-collect-config"),
        "--config-file",
        str(agent.configuration),
        "--polling-interval=1",
        "--min-polling-interval=1",
        f"--cachedir={root}/cache",
        f"--backup-cachedir={root}/backup",
        f"--local-path={root}/local-data",
        f"--command=os-refresh-config --lockfile {root}/lock",
    ]
    with (
        folder.joinpath("agent.log").open("ab") as log,
        running(command, env=environment, stdout=log, stderr=log, start_new_session=True),
    ):
        yield agent


def _install(root: Path, release: Path) -> dict[str, str]:
    """Install the programs into a new folder, and return the variables that lead them there."""
    templates, steps, hooks = root / "templates", root / "steps" / "configure.d", root / "hooks"
    for folder in (root / "etc", root / "local-data", steps, hooks):
        folder.mkdir(parents=True)
    shutil.copytree(release / "heat-config" / "os-apply-config", templates)
    shutil.copy(release / "heat-config/os-refresh-config/configure.d/55-heat-config", steps)
    _program(steps / "20-os-apply-config", f'#!/bin/sh\nexec os-apply-config -o "{root}"\n')
    for hook in release.glob("heat-config-*/install.d/hook-*.py"):
        _program(hooks / hook.stem.removeprefix("hook-"), hook.read_text())
    (steps / "55-heat-config").chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OS_", "STOKER_"))},
        "HOME": str(root),
        "PYTHONPATH": str(release.parent / "clients"),
        "LC_ALL": "C",  # its local collector fails with a locale that the machine lacks
        "PATH": f"{_BIN}:{release / 'heat-config' / 'bin'}:{os.environ['PATH']}",
        "OS_REFRESH_CONFIG_BASE_DIR": str(steps.parent),
        "OS_CONFIG_APPLIER_TEMPLATES": str(templates),
        "HEAT_CONFIG_HOOKS": str(hooks),
        "HEAT_SHELL_CONFIG": str(root / "var/run/heat-config/heat-config"),
        "HEAT_CONFIG_DEPLOYED": str(root / "deployed"),
        "HEAT_CONFIG_DEPLOYED_OLD": str(root / "deployed"),
        "HEAT_SCRIPT_WORKING": str(root / "script"),
        "HEAT_SCRIPT_OUTPUTS": str(root / "outputs"),
        "HEAT_CONFIG_WORKING": str(root / "working"),
    }


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
