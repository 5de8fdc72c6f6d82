"""A server that test machines reach, and machines with Stoker's package."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Served, served
from support.source_code import PACKAGES

_PROGRAM = """#!/usr/bin/python3
import sys
sys.path[:0] = ["/opt/stoker/src", "/opt/stoker/lib"]
from stoker_client.cli.main import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def stoker(machines, tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("stoker"), host=machines.host_address) as running:
        yield running


@pytest.fixture
def image(tmp_path) -> Path:
    """The files of a machine with Stoker's package: hard links of the libraries of this Python."""
    folder = tmp_path / "image"
    home = folder / "opt" / "stoker"
    home.mkdir(parents=True)
    subprocess.run(["cp", "-al", sysconfig.get_path("purelib"), str(home / "lib")], check=True)
    for package in PACKAGES:
        shutil.copytree(package, home / "src" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for program in (folder / "usr" / "local" / "bin" / "stoker", home / "bin" / "stoker"):
        program.parent.mkdir(parents=True)
        program.write_text(_PROGRAM)
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    for program in folder.rglob("bin/stoker"):
        program.chmod(0o755)
    return folder
