"""The real configuration tools that tests of hooks run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from support.databases import missing
from support.installations import Installation, from_pypi, run

ANSIBLE = from_pypi("ansible-core==2.19.14")
SALT = from_pypi("salt==3008.3")


def _build_cfn_tools(folder: Path) -> None:
    """Install into one folder, which is copied into machines."""
    packages = ("heat-cfntools==2.0.0", "os-apply-config==14.1.0")
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(folder), *packages)


CFN_TOOLS = Installation("heat-cfntools==2.0.0", _build_cfn_tools)


def find_tool(name: str) -> str:
    """Return the path of a tool of an operating system's package. Without it, skip the test; under CI, fail."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed; .ci/run names its package")
    return path
