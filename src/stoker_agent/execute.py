"""Execute one run: start the program, end it when its time is over, gather what it left."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from stoker_agent.limits import clipped_text
from stoker_agent.programs import CannotRun, Program, inputs, program

#: In the environment of everything a run starts, with the config's id: how an agent finds what one before it left.
MARKER = "STOKER_RUN"
_GRACE_SECONDS = 5.0
_log = logging.getLogger("stoker-agent")

#: Codes of runs that did not end by themselves, as shells number them.
TIMED_OUT, INTERRUPTED = 124, 137


def execute(entry: Mapping[str, Any], own_hooks: Path, folder: Path) -> Dict[str, Any]:
    """The values to report. Never raises for what a config or a hook does."""
    try:
        made = program(entry, own_hooks, folder)
        process = _start(made, entry, folder)
    except CannotRun as error:
        return failed(str(error), 1)
    except OSError as error:
        return failed(f"The hook could not be started: {error}", 126)
    except Exception as error:  # whatever a document may hold, the runs after it go on
        return failed(f"The config cannot be run: {type(error).__name__}: {error}", 1)
    seconds = _seconds(inputs(entry).get("deploy_timeout"))
    try:
        code = process.wait(seconds or None)
    except subprocess.TimeoutExpired:
        _log.warning("run %s has had its %g s and is ended", entry["id"], seconds)
        _end_group(process)
        return failed(f"Timed out after {seconds:g} s", TIMED_OUT, folder)
    return _gathered(made, code, folder)


def failed(reason: str, code: int, folder: Optional[Path] = None) -> Dict[str, Any]:
    values: Dict[str, Any] = {"deploy_status_reason": reason, "deploy_status_code": code}
    return {**values, **_streams(folder)} if folder else {**values, "deploy_stdout": "", "deploy_stderr": reason}


def _start(made: Program, entry: Mapping[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        **made.environment,
        MARKER: entry["id"],
        "STOKER_RUN_DIR": str(folder),
        "STOKER_PROGRESS": str(folder / "progress"),
    }
    # All three are files: a daemon that keeps them open, or a hook that reads nothing, holds nobody up.
    with contextlib.ExitStack() as files:
        told = files.enter_context(tempfile.TemporaryFile(dir=str(folder)))
        told.write(made.stdin)
        told.seek(0)
        out = files.enter_context(folder.joinpath(made.stdout).open("wb"))
        err = files.enter_context(folder.joinpath("stderr").open("wb"))
        return subprocess.Popen(
            list(made.argv), env=environment, stdin=told, stdout=out, stderr=err, start_new_session=True
        )


def _gathered(made: Program, code: int, folder: Path) -> Dict[str, Any]:
    try:
        values = made.finish(code)
    except Exception as error:  # an output nobody can read, say
        return failed(f"What the run left cannot be read: {type(error).__name__}: {error}", code or 1, folder)
    return {"deploy_status_code": code, **_streams(folder), **values}


def _streams(folder: Path) -> Dict[str, Any]:
    return {f"deploy_{name}": clipped_text(folder / name) for name in ("stdout", "stderr")}


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM, a moment of grace, then KILL to all of its group; returns when nothing of it is left."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, sign)
        until = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < until:
            process.poll()
            if not any(_lives_in(process.pid, pid) for pid in _processes()):
                return
            time.sleep(0.02)


def _lives_in(group: int, pid: int) -> bool:
    """Ended processes that nobody has asked for do not count."""
    try:
        state, _, found, *_ = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return False
    return int(found) == group and state not in (b"Z", b"X")


def _seconds(said: Any) -> float:
    try:
        return max(0.0, float(said))
    except (TypeError, ValueError):
        return 0.0


def end_leftovers(id: str) -> None:
    """End what a run of an agent before this one still has running; a run may have started this agent."""
    marker = f"{MARKER}={id}".encode()
    until = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < until:
        found = [pid for pid in _processes() if pid != os.getpid() and marker in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
