"""Execute one run: start the program, end it when its time is over or it is not wanted, gather what it left."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from stoker_agent.files import write
from stoker_agent.keeping import Kept
from stoker_agent.limits import clipped_text
from stoker_agent.programs import ANSWER, LONGEST_ANSWER, CannotRun, Program, inputs, on_cancel, program
from stoker_agent.stopping import GRACE_SECONDS, KILLED, Control, before, end_session, grace, is_over, processes

#: In the environment of everything a run starts: how an agent finds what one before it left. Of several agents on one
#: machine each has folders of its own, while they may well run the same config.
_MARKER = "STOKER_RUN_DIR"
#: In the run's folder: it was begun, and is being stopped; why. What follows is done also by the next agent.
_STOPPING = "stopping"
#: How long what a config runs when it is cancelled may take.
_ON_CANCEL_SECONDS = 60.0
#: How often a run is looked at whose output may have to be cut.
_LOOK_SECONDS = 0.25
_log = logging.getLogger("stoker-agent")

#: Codes of runs that did not end by themselves, as shells number them.
TIMED_OUT, INTERRUPTED = 124, 137


def execute(
    entry: Mapping[str, Any], own_hooks: Path, folder: Path, control: Control, streams: Sequence[Kept]
) -> Dict[str, Any]:
    """The values to report. Never raises for what a config or a hook does. ``streams``: what is to stay in bounds."""
    if control.why is not None:
        return {**before(control.why), **_streams(folder)}
    try:
        made = program(entry, own_hooks, folder)
        process = _start(made, entry, folder)
    except CannotRun as error:
        return failed(str(error), 1)
    except OSError as error:
        return failed(f"The hook could not be started: {error}", 126)
    except Exception as error:  # whatever a document may hold, the runs after it go on
        return failed(f"The config cannot be run: {type(error).__name__}: {error}", 1)
    streams = [*streams, Kept(folder / ANSWER, 2 * LONGEST_ANSWER)] if made.stdout == ANSWER else streams
    cut_short = _until_over(entry, process, folder, control, streams)
    return _gathered(made, process.returncode, folder) if cut_short is None else cut_short


def _until_over(
    entry: Mapping[str, Any],
    process: subprocess.Popen[bytes],
    folder: Path,
    control: Control,
    streams: Sequence[Kept],
) -> Optional[Dict[str, Any]]:
    """The values to report of a run that did not end by itself; None of one that did."""
    threading.Thread(target=_wait_for, args=(process, control), name="wait", daemon=True).start()
    seconds = _seconds(inputs(entry).get("deploy_timeout"))
    until = time.monotonic() + seconds if seconds else None
    while not control.ended:
        left = None if until is None else until - time.monotonic()
        if control.why is not None and not is_over(process):
            return _stop(entry, folder, process, control.why, streams)
        if left is not None and left <= 0:
            _log.warning("run %s has had its %g s and is ended", entry["id"], seconds)
            end_session(process, GRACE_SECONDS)
            return failed(f"Timed out after {seconds:g} s", TIMED_OUT, folder)
        control.wait(_LOOK_SECONDS if left is None else min(left, _LOOK_SECONDS))
        _trim(streams)
    return None


def failed(reason: str, code: int, folder: Optional[Path] = None) -> Dict[str, Any]:
    values: Dict[str, Any] = {"deploy_status_reason": reason, "deploy_status_code": code}
    return {**values, **_streams(folder)} if folder else {**values, "deploy_stdout": "", "deploy_stderr": reason}


def was_stopping(folder: Path) -> Optional[str]:
    """Why an agent before this one was about to stop the run, if it was."""
    try:
        return folder.joinpath(_STOPPING).read_text() or None
    except OSError:
        return None


def stopped_before(entry: Mapping[str, Any], folder: Path, why: str) -> Dict[str, Any]:
    """The result of a run that an agent before this one began to stop; nothing of it is left."""
    values = {"deploy_status_reason": f"{why}: had to be killed", "deploy_status_code": KILLED}
    return _cleaned(entry, folder, values, [])


def _wait_for(process: subprocess.Popen[bytes], control: Control) -> None:
    process.wait()
    control.end()


def _stop(
    entry: Mapping[str, Any], folder: Path, process: subprocess.Popen[bytes], why: str, streams: Sequence[Kept]
) -> Dict[str, Any]:
    _log.warning("run %s is %s, and ended", entry["id"], why.lower())
    try:
        write(folder / _STOPPING, why.encode())
    except OSError as error:  # an agent that is killed now would report an interrupted run, that is all
        _log.error("cannot note that %s is being stopped: %s", entry["id"], error)
    ended = end_session(process, grace(entry), lambda: _trim(streams))
    return _cleaned(entry, folder, ended.values(why), streams)


def _cleaned(entry: Mapping[str, Any], folder: Path, values: Dict[str, Any], streams: Sequence[Kept]) -> Dict[str, Any]:
    """With what the config wants to be run when it is cancelled, and a word on that when it failed."""
    problem = None
    try:
        made = on_cancel(entry, folder)
        if made is not None:
            problem = _cleanup(_start(made, entry, folder, mode="ab"), streams)
    except (CannotRun, OSError) as error:
        problem = f"could not be run: {error}"
    except Exception as error:  # whatever a document may hold
        problem = f"cannot be run: {type(error).__name__}: {error}"
    if problem is not None:
        values["deploy_status_reason"] += f"; on_cancel {problem}"
    return {**values, **_streams(folder)}


def _cleanup(process: subprocess.Popen[bytes], streams: Sequence[Kept]) -> Optional[str]:
    """What went wrong with it."""
    control = Control("")
    threading.Thread(target=_wait_for, args=(process, control), name="wait", daemon=True).start()
    until = time.monotonic() + _ON_CANCEL_SECONDS
    while not control.ended:
        if time.monotonic() >= until:
            end_session(process, GRACE_SECONDS)
            return f"timed out after {_ON_CANCEL_SECONDS:g} s"
        control.wait(_LOOK_SECONDS)
        _trim(streams)
    return f"ended with {process.returncode}" if process.returncode else None


def _trim(streams: Sequence[Kept]) -> None:
    for each in streams:
        each.trim()


def _start(made: Program, entry: Mapping[str, Any], folder: Path, mode: str = "wb") -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        **made.environment,
        "STOKER_RUN": entry["id"],
        _MARKER: str(folder),
        "STOKER_PROGRESS": str(folder / "progress"),
    }
    # All three are files: a daemon that keeps them open, or a hook that reads nothing, holds nobody up.
    with contextlib.ExitStack() as files:
        told = files.enter_context(tempfile.TemporaryFile(dir=str(folder)))
        told.write(made.stdin)
        told.seek(0)
        out = files.enter_context(folder.joinpath(made.stdout).open(mode))
        err = files.enter_context(folder.joinpath("stderr").open(mode))
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


def _seconds(said: Any) -> float:
    try:
        return max(0.0, float(said))
    except (TypeError, ValueError):
        return 0.0


def end_leftovers(folder: Path) -> None:
    """End what a run still has running that nobody watches any more; it may have started this agent."""
    marker = f"{_MARKER}={folder}".encode()
    until = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < until:
        found = [pid for pid in processes() if pid != os.getpid() and marker in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _environment(pid: int) -> List[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
