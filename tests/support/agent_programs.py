"""Agent programs of other versions, built from changed sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import stoker_agent

_SOURCES = Path(stoker_agent.__file__).parent


def build_agent(folder: Path, version: str, module: str = "", text: str = "") -> bytes:
    """Return the agent's program with another version, and with ``text`` at the end of a module."""
    package = folder / version / "stoker_agent"
    shutil.copytree(_SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    package.joinpath("__init__.py").write_text(f'"""Changed."""\n\n__version__ = "{version}"\n')
    if module:
        with package.joinpath(module).open("a") as file:
            file.write(text)
    target = folder / f"{version}.pyz"
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    subprocess.run([sys.executable, "-m", "stoker_agent", "build", str(target)], env=environment, check=True)
    return target.read_bytes()
