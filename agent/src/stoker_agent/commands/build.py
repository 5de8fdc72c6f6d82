"""
``stoker-agent build``: writes the agent as one executable file.

The bytes depend on the sources only, because install commands name their SHA-256: nothing is compressed, because
versions of zlib compress differently.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import stoker_agent
from stoker_agent.config import Paths

_MAIN = "import stoker_agent.__main__\n\nstoker_agent.__main__.exit_with()\n"
#: The earliest time that a ZIP archive can record.
_TIME = (1980, 1, 1, 0, 0, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("target", type=Path)


def main(options: argparse.Namespace, _: Paths) -> int:
    """Build the program."""
    build(options.target)
    return 0


def build(target: Path) -> None:
    """Write a zipapp of this package to ``target``, executable by Python 3.8 or newer."""
    package = Path(stoker_agent.__file__).parent
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(package.rglob("*")):
                # The installer is downloaded separately.
                if path.is_file() and "__pycache__" not in path.parts and path != package / "install.py":
                    archive.writestr(_entry(path.relative_to(package.parent).as_posix()), path.read_bytes())
            archive.writestr(_entry("__main__.py"), _MAIN)
    target.chmod(0o755)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.external_attr = 0o644 << 16
    return entry
