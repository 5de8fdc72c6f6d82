"""The file that the agent runs from, from which modules are imported also when their first use is late."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import stoker_agent


def pin() -> None:
    """
    Import all later modules from the program file that is open now, also if another file takes its name.

    The agent loads the modules of runs with its first run. Between the replacement of the program and the restart, the
    new file would have other modules at other positions. Does nothing if the agent runs from a source directory.
    """
    program = Path(stoker_agent.__file__).parents[1]
    if not program.is_file() or not Path("/proc/self/fd").is_dir():
        return
    opened = f"/proc/self/fd/{os.open(str(program), os.O_RDONLY | os.O_CLOEXEC)}"
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == stoker_agent.__name__ and hasattr(module, "__path__"):
            module.__path__ = [folder.replace(str(program), opened, 1) for folder in module.__path__]
