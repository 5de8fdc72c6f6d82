"""Starts and ends processes of tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_PATIENCE = 10


@contextmanager
def running(command: list[str], **how: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process and end it with the context."""
    process = subprocess.Popen(command, **how)
    try:
        yield process
    finally:
        end(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def end(process: subprocess.Popen[Any]) -> None:
    """Send SIGTERM, and then SIGKILL if necessary."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def list_children(parent: int) -> list[int]:
    """Return the ids of a process's children."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int(entry.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(entry.name))
    return sorted(found)
