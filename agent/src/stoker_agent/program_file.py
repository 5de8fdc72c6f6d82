"""The file that the agent runs from, from which modules are imported also when their first use is late."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Optional

import stoker_agent


def find() -> Optional[Path]:
    """Return the file that this agent runs from, or None if the agent runs from a source directory."""
    path = Path(stoker_agent.__file__).resolve().parents[1]
    return path if path.is_file() else None


def read() -> Optional[bytes]:
    """Return the program that this process executes, or None if the agent runs from a source directory."""
    opened = Path(stoker_agent.__path__[0]).parent  # as ``pin`` has opened it
    return opened.read_bytes() if opened.is_file() else None


def pin() -> None:
    """
    Import all later modules from the program file that is open now, also if another file takes its name.

    Some modules are imported when they are needed. Between the replacement of the program and the restart, the
    new file would have other modules at other positions. Does nothing if the agent runs from a source directory.
    """
    program = Path(stoker_agent.__file__).parents[1]
    if not program.is_file() or not Path("/proc/self/fd").is_dir():
        return
    opened = f"/proc/self/fd/{os.open(str(program), os.O_RDONLY | os.O_CLOEXEC)}"
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == stoker_agent.__name__ and hasattr(module, "__path__"):
            module.__path__ = [folder.replace(str(program), opened, 1) for folder in module.__path__]
