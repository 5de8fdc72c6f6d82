"""
The file that the agent runs from, and its replacement by the hook ``agent``: the record of it, and the restart.

A process of the old program (``update_guard``) restores the old file if the new program has no contact with Stoker. The
record in ``<state>/update.json`` says how far the update is, for the hook, the agent and this process.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional

import stoker_agent
from stoker_agent.config import Paths
from stoker_agent.files import read_map, write_json
from stoker_agent.service_manager import ServiceManager

_log = logging.getLogger("stoker-agent")

RESTARTING, COMPLETE, ROLLED_BACK = "RESTARTING", "COMPLETE", "ROLLED_BACK"
_START_SECONDS = 60.0


class UpdateRecord(NamedTuple):
    """The last replacement of this agent's program. ``id`` is that of the run."""

    id: str
    state: str
    #: The digest of the new program.
    sha256: str
    #: The agent's program, and the file with the old one.
    program: str
    previous: str
    #: Seconds until the return to the old program, and the time (time.time) of the replacement.
    seconds: float
    at: float
    reason: str = ""


def find_program() -> Optional[Path]:
    """Return the file that this agent runs from, or None if the agent runs from a source directory."""
    path = Path(stoker_agent.__file__).resolve().parents[1]
    return path if path.is_file() else None


def digest(content: bytes) -> str:
    """Return the SHA-256 of a program."""
    return hashlib.sha256(content).hexdigest()


def read_record(state: Path) -> Optional[UpdateRecord]:
    """Return the record of the last update, or None."""
    try:
        return UpdateRecord(**read_map(state / "update.json"))
    except TypeError:
        return None


def store_record(state: Path, record: UpdateRecord) -> None:
    """Store the record. Raises OSError."""
    write_json(state / "update.json", record._asdict())


def guard_start(paths: Paths, manager: ServiceManager) -> None:
    """Start the guard of an update again, if this process executes its program and had no contact with Stoker yet."""
    record, program = read_record(paths.state), find_program()
    if record is not None and program is not None and digest(program.read_bytes()) == record.sha256:
        _start_guard(paths, record, manager)


def restart(paths: Paths, manager: ServiceManager, was_stopped: Callable[[], bool]) -> None:
    """
    Execute the new program in this process.

    Returns if a signal has ended the agent meanwhile (``was_stopped``), of which the new program would not know: the
    old file is then restored, and the run of the hook begins again at the next start. Raises OSError.
    """
    record = read_record(paths.state)
    if record is None or record.state != RESTARTING:
        return
    _start_guard(paths, record, manager)
    if was_stopped():
        Path(record.previous).replace(record.program)
        (paths.state / "update.json").unlink()
        return
    _log.info("update.restarted: the new program starts")
    manager.restore_environment()
    os.execv(sys.executable, [sys.executable, record.program, *sys.argv[1:]])  # noqa: S606 — a shell would be another process


def _start_guard(paths: Paths, record: UpdateRecord, manager: ServiceManager) -> None:
    """Start the process that restores the old program, from the old program's file."""
    if record.state != RESTARTING or not Path(record.previous).exists():
        return
    words = [*(["--managed"] if manager.is_present else []), *root_words(paths), "--", *sys.argv[1:]]
    subprocess.run(
        [sys.executable, record.previous, "update-guard", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_START_SECONDS,
        check=False,
    )


def root_words(paths: Paths) -> List[str]:
    """Return the words of a command line that name the agent's directory."""
    return [] if paths == Paths.of(None) else ["--root", str(paths.state.parent)]
