"""
Builds the agent as one file with reproducible bytes, because install commands name its SHA-256.

The bytes depend on the sources only: nothing is compressed, because versions of zlib compress differently.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Iterable, Iterator, Mapping

from stoker_agent.hook_contract import module_name
from stoker_agent.programs import HOOKS, list_builtin

_MAIN = "import stoker_agent.__main__\n\nstoker_agent.__main__.exit_with()\n"
#: The earliest time that a ZIP archive can record.
_TIME = (1980, 1, 1, 0, 0, 0)


def build(target: Path) -> None:
    """Write a zipapp of this package to ``target``, executable by Python 3.8 or newer."""
    names = "\n".join(module_name(group) for group in list_builtin())
    _write(target, _sources(Path(__file__).parent), {f"stoker_agent/hooks/{HOOKS}": names, "__main__.py": _MAIN})


def _write(target: Path, sources: Iterable[Path], texts: Mapping[str, str]) -> None:
    package = Path(__file__).parent
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for path in sources:
                name = path.relative_to(package.parent).as_posix()
                archive.writestr(_entry(name), path.read_bytes())
            for name, text in texts.items():
                archive.writestr(_entry(name), text)
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
