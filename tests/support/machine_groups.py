"""Control groups of test machines, in every hierarchy of the host (version 1, 2, or both)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from support import waiting

_TOP = Path("/sys/fs/cgroup")


def locate(name: str) -> list[Path]:
    """Return the folder of the machine in each hierarchy, below the groups of this process."""
    return [parent / f"stoker-{name}" for parent in _parents()]


def _parents() -> list[Path]:
    folders = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        hierarchy = controllers.removeprefix("name=") or ("unified" if (_TOP / "unified").is_dir() else "")
        folders.append(_TOP / hierarchy / path.lstrip("/"))
    return [folder for folder in folders if folder.is_dir()]


def sweep(prefix: str) -> None:
    """Kill the processes of all machines whose names begin with ``prefix``, and remove their groups."""
    folders = [folder for parent in _parents() for folder in parent.glob(f"stoker-{prefix}*")]
    for folder in folders:
        for processes in folder.rglob("cgroup.procs"):
            for pid in processes.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
    remove(folders)


def create(folders: Sequence[Path]) -> None:
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # without these, version 1 accepts no process
            if (folder / name).exists() and folder.is_relative_to(_TOP / "cpuset"):
                (folder / name).write_text((folder.parent / name).read_text())


def remove(folders: Sequence[Path]) -> None:
    """Remove the groups of a machine whose processes have been killed. The kernel takes a moment to drop them."""
    for folder in folders:
        waiting.until(
            lambda folder=folder: _is_gone(folder),
            explain=lambda folder=folder: f"{folder} has processes: {(folder / 'cgroup.procs').read_text()}",
        )


def _is_gone(folder: Path) -> bool:
    """Remove the group with those below it as far as the kernel lets it."""
    with contextlib.suppress(OSError):
        for group in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            group.rmdir()
        folder.rmdir()
    return not folder.exists()


def run_inside(folders: Sequence[Path], command: Sequence[str]) -> list[str]:
    """Return a command that runs ``command`` in these groups."""
    script = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"'
    return ["sh", "-c", script, "sh", *map(str, folders), "--", *command]
