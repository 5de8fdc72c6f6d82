"""
``stoker-agent update-guard``: restores the old program if a new one does not reach Stoker in time.

The agent starts this command from the old program's file before it executes the new program.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Optional

from stoker_agent.config import Paths
from stoker_agent.self_update import COMPLETE, RESTARTING, ROLLED_BACK, UpdateRecord, read_record, store_record
from stoker_agent.service import stop_process
from stoker_agent.status import read_status
from stoker_agent.transports import STOKER

_EVERY_SECONDS = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--managed", action="store_true", help="systemd starts the agent again")
    parser.add_argument("words", nargs="*", help="the agent's command line")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Continue in the background; one guard per agent."""
    if os.fork():
        return 0
    os.setsid()
    handle = os.open(str(paths.state / "update.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _guard(paths, None if options.managed else options.words)
    return 0


def _guard(paths: Paths, words: Optional[list[str]]) -> None:
    record = read_record(paths.state)
    if record is None:
        return
    until = time.monotonic() + record.seconds
    while record is not None and record.state == RESTARTING:
        if _has_contact(paths, record):
            store_record(paths.state, record._replace(state=COMPLETE))
            return
        if time.monotonic() > until:
            _roll_back(paths, record)
            if words is not None:
                command = [sys.executable, record.program, *words]
                nothing = subprocess.DEVNULL
                subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
            return
        time.sleep(_EVERY_SECONDS)
        record = read_record(paths.state)


def _has_contact(paths: Paths, record: UpdateRecord) -> bool:
    """Whether the new program, which started after the replacement, has reached Stoker."""
    status = read_status(paths.state)
    return float(status.get("started_at") or 0.0) > record.at and status.get("source") == STOKER


def _roll_back(paths: Paths, record: UpdateRecord) -> None:
    """Restore the old program, and end the process of the new one."""
    status = read_status(paths.state)
    failures = [str(failure.get("message")) for failure in (status.get("failures") or {}).values()]
    why = f": {failures[0]}" if failures else ""
    reason = f"the new program had no contact with Stoker within {record.seconds:g} s{why}"
    program = Path(record.program)
    copy = program.with_name(program.name + ".new")
    copy.unlink(missing_ok=True)
    os.link(record.previous, str(copy))
    copy.replace(program)
    store_record(paths.state, record._replace(state=ROLLED_BACK, reason=reason))
    stop_process(paths)
