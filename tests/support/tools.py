"""The real configuration tools that tests of hooks run."""

from __future__ import annotations

import shutil
import sys

from support.databases import missing
from support.installations import Installation, from_pypi, run

ANSIBLE = from_pypi("ansible-core==2.19.14")
SALT = from_pypi("salt==3008.3")


def _in_one_folder(*packages: str) -> Installation:
    """Return an installation without an environment, which is copied into machines."""
    pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    return Installation(packages[0], lambda folder: run(*pip, "--target", str(folder), *packages))


CFN_TOOLS = _in_one_folder("heat-cfntools==2.0.0", "os-apply-config==14.1.0")
IMAGE_BUILDER = _in_one_folder("diskimage-builder==3.43.0")


def find_tool(name: str) -> str:
    """Return the path of a tool of an operating system's package. Without it, skip the test; under CI, fail."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed; .ci/run names its package")
    return path
