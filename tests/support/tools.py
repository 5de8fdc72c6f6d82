"""The real configuration tools that tests of hooks run."""

from __future__ import annotations

import shutil

from support.databases import missing
from support.installations import from_pypi

ANSIBLE = from_pypi("ansible-core==2.19.14")
SALT = from_pypi("salt==3008.3")


def find_tool(name: str) -> str:
    """Return the path of a tool of an operating system's package. Without it, skip the test; under CI, fail."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed; .ci/run names its package")
    return path
