"""
Builds the agent as one file with reproducible bytes, because install commands name its SHA-256.

The bytes depend on the sources only: nothing is compressed, because versions of zlib compress differently.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Iterator

_MAIN = "import stoker_agent.__main__\n\nstoker_agent.__main__.exit_with()\n"
#: The earliest time that a ZIP archive can record.
_TIME = (1980, 1, 1, 0, 0, 0)


def build(target: Path) -> None:
    """Write a zipapp of this package to ``target``, executable by Python 3.8 or newer."""
    package = Path(__file__).parent
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for path in _sources(package):
                archive.writestr(_entry(path.relative_to(package.parent).as_posix()), path.read_bytes())
            archive.writestr(_entry("__main__.py"), _MAIN)
    target.chmod(0o755)


def _sources(package: Path) -> Iterator[Path]:
    """Yield the agent's files in a fixed order. The installer is excluded, because it is downloaded separately."""
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path != package / "install.py":
            yield path


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.external_attr = 0o644 << 16
    return entry
