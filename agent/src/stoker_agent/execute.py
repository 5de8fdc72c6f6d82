"""Executes one run: starts the program, enforces timeout and cancellation, and gathers output and result."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from stoker_agent.failures import TIMED_OUT, failure, read_streams
from stoker_agent.files import write
from stoker_agent.hook_contract import APPLY
from stoker_agent.launch import Launch
from stoker_agent.output_files import BoundedFile
from stoker_agent.programs import ANSWER, LONGEST_ANSWER, CannotRun, Program, inputs, on_cancel, parse_seconds, program
from stoker_agent.termination import GRACE_SECONDS, KILLED, STOPPING, Control, before, end_session, grace

#: The time limit of a config's ``on_cancel`` script.
_ON_CANCEL_SECONDS = 60.0
#: The interval at which the agent checks the size of a run's output.
_LOOK_SECONDS = 0.25
_log = logging.getLogger("stoker-agent")


def execute(
    entry: Mapping[str, Any],
    own_hooks: Path,
    variables: Path,
    folder: Path,
    control: Control,
    streams: Sequence[BoundedFile],
) -> Dict[str, Any]:
    """
    Execute a run and return the values to report.

    The entry's ``mode`` is what the hook does, by default ``apply``. ``own_hooks`` is the directory that is searched
    first for hooks, ``variables`` the file with the machine's variables for runs, ``folder`` the run's directory.
    ``control`` ends the run early. ``streams`` are the output files to keep within bounds. Failures of a config or hook
    are returned as values, never raised.
    """
    if control.why is not None:
        return {**before(control.why), **read_streams(folder)}
    try:
        launch = Launch(entry, folder, variables)
        command = program(entry, own_hooks, launch.folders, str(entry.get("mode") or APPLY))
        process = launch.start(command)
    except CannotRun as error:
        return failure(str(error), error.code)
    except OSError as error:
        return failure(f"The hook could not be started: {error}", 126)
    except Exception as error:  # the agent must survive any content of a document
        return failure(f"The config cannot be run: {type(error).__name__}: {error}", 1)
    streams = [*streams, BoundedFile(folder / ANSWER, 2 * LONGEST_ANSWER)] if command.stdout == ANSWER else streams
    cut_short = _until_over(launch, entry, process, folder, control, streams)
    return launch.complete(_gather(launch, command, process.returncode, folder) if cut_short is None else cut_short)


def _until_over(
    launch: Launch,
    entry: Mapping[str, Any],
    process: subprocess.Popen[bytes],
    folder: Path,
    control: Control,
    streams: Sequence[BoundedFile],
) -> Optional[Dict[str, Any]]:
    """Wait for the process. Return the values to report if the agent ended the run, or None if it ended by itself."""
    threading.Thread(target=_wait_for, args=(process, control), name="wait", daemon=True).start()
    seconds = parse_seconds(inputs(entry).get("deploy_timeout"))
    until = time.monotonic() + seconds if seconds else None
    while not control.ended:
        left = None if until is None else until - time.monotonic()
        if control.why is not None:
            return _stop(launch, entry, folder, process, control.why, streams)
        if left is not None and left <= 0 and end_session(process, GRACE_SECONDS) is not None:
            _log.warning("run.timed_out: run %s has exceeded its %g s and was stopped", entry["id"], seconds)
            return failure(f"Timed out after {seconds:g} s", TIMED_OUT, folder)
        control.wait(_LOOK_SECONDS if left is None else min(left, _LOOK_SECONDS))
        _trim(streams)
    return None


def interrupted_stop_result(entry: Mapping[str, Any], variables: Path, folder: Path, why: str) -> Dict[str, Any]:
    """
    Run ``on_cancel`` and return the result of a run that an earlier agent began to stop.

    No process of the run remains.
    """
    values: Dict[str, Any] = {"deploy_status_reason": f"{why}: had to be killed", "deploy_status_code": KILLED}
    try:
        launch = Launch(entry, folder, variables)
    except CannotRun as error:
        values["deploy_status_reason"] += f"; on_cancel could not be run: {error}"
        return {**values, **read_streams(folder)}
    return _run_cleanup(launch, entry, folder, values, [])


def _wait_for(process: subprocess.Popen[bytes], control: Control) -> None:
    process.wait()
    control.end()


def _stop(
    launch: Launch,
    entry: Mapping[str, Any],
    folder: Path,
    process: subprocess.Popen[bytes],
    why: str,
    streams: Sequence[BoundedFile],
) -> Optional[Dict[str, Any]]:
    """Stop the run. Return the values to report, or None if the process ended by itself before it was stopped."""
    _log.warning("run.stopped: run %s is %s and stopped", entry["id"], why.lower())
    try:
        write(folder / STOPPING, why.encode())
    except OSError as error:  # if the agent is killed now, the next one only reports an interrupted run
        _log.error("run.not_marked: cannot record that %s is being stopped: %s", entry["id"], error)
    ended = end_session(process, grace(entry), lambda: _trim(streams))
    if ended is None:
        folder.joinpath(STOPPING).unlink(missing_ok=True)
        process.wait()  # the other thread may not have the exit code yet
        return None
    return _run_cleanup(launch, entry, folder, ended.values(why), streams)


def _run_cleanup(
    launch: Launch, entry: Mapping[str, Any], folder: Path, values: Dict[str, Any], streams: Sequence[BoundedFile]
) -> Dict[str, Any]:
    """Run the config's ``on_cancel`` script. Return ``values`` with the output and any failure of the script."""
    problem = None
    try:
        command = on_cancel(entry, folder)
        if command is not None:
            problem = _cleanup(launch.start(command), streams)
    except (CannotRun, OSError) as error:
        problem = f"could not be run: {error}"
    except Exception as error:  # the agent must survive any content of a document
        problem = f"cannot be run: {type(error).__name__}: {error}"
    if problem is not None:
        values["deploy_status_reason"] += f"; on_cancel {problem}"
    return {**values, **read_streams(folder)}


def _cleanup(process: subprocess.Popen[bytes], streams: Sequence[BoundedFile]) -> Optional[str]:
    """Wait for the ``on_cancel`` process and describe its failure, or return None."""
    control = Control()
    threading.Thread(target=_wait_for, args=(process, control), name="wait", daemon=True).start()
    until = time.monotonic() + _ON_CANCEL_SECONDS
    while not control.ended:
        if time.monotonic() >= until:
            end_session(process, GRACE_SECONDS)
            return f"timed out after {_ON_CANCEL_SECONDS:g} s"
        control.wait(_LOOK_SECONDS)
        _trim(streams)
    return f"ended with {process.returncode}" if process.returncode else None


def _trim(streams: Sequence[BoundedFile]) -> None:
    for stream in streams:
        stream.trim()


def _gather(launch: Launch, command: Program, code: int, folder: Path) -> Dict[str, Any]:
    problem = launch.problem()
    if problem is not None:
        return failure(problem, code or 1, folder)
    try:
        values = command.finish(code)
    except Exception as error:  # for example: an output that cannot be read
        return failure(f"What the run left cannot be read: {type(error).__name__}: {error}", code or 1, folder)
    return {"deploy_status_code": code, **read_streams(folder), **values}
