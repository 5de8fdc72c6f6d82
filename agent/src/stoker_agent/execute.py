"""Executes one run: starts the program, enforces timeout and cancellation, and gathers output and result."""

from __future__ import annotations

import logging
import math
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from stoker_agent.files import write
from stoker_agent.hook_contract import APPLY, HookError
from stoker_agent.launch import Launch
from stoker_agent.output_files import BoundedFile
from stoker_agent.programs import ANSWER, LONGEST_ANSWER, Program, inputs, on_cancel, parse_seconds, program
from stoker_agent.reports import TIMED_OUT, failure, read_streams
from stoker_agent.termination import GRACE_SECONDS, KILLED, STOPPING, TERMINATED, Control, end_session, grace

#: The time limit of a config's ``on_cancel`` script.
_ON_CANCEL_SECONDS = 60.0
#: The interval at which the agent checks the size of a run's output.
_LOOK_SECONDS = 0.25
_log = logging.getLogger("stoker-agent")


class Execution:
    """
    The execution of one run, the document's entry ``entry``.

    ``variables`` is the file with the machine's variables for runs, ``folder`` the run's directory. ``control`` ends
    the run early. ``log_bytes`` limits the size of each output stream. ``longest`` is the time limit in seconds of a
    run whose own is longer, or that has none.
    """

    def __init__(
        self,
        entry: Mapping[str, Any],
        variables: Path,
        folder: Path,
        control: Control,
        log_bytes: int = 0,
        longest: float = math.inf,
    ) -> None:
        self._entry = entry
        self._variables = variables
        self._folder = folder
        self._control = control
        #: The output by name.
        self.streams = {name: BoundedFile(folder / name, log_bytes) for name in ("stdout", "stderr")}
        #: The files to keep within bounds.
        self._bounded = [*self.streams.values()]
        self._longest = longest

    def execute(self, own_hooks: Path) -> Dict[str, Any]:
        """
        Execute the run and return the values to report.

        The entry's ``mode`` is what the hook does, by default ``apply``. ``own_hooks`` is the directory that is
        searched first for hooks. Failures of a config or hook are returned as values, never raised.
        """
        if self._control.why is not None:
            return failure(f"{self._control.why} before it began", TERMINATED, self._folder)
        try:
            launch = Launch(self._entry, self._folder, self._variables)
            command = program(self._entry, own_hooks, launch.folders, str(self._entry.get("mode") or APPLY))
            process = launch.start(command)
        except HookError as error:
            return failure(str(error), error.code)
        except OSError as error:
            return failure(f"The hook could not be started: {error}", 126)
        except Exception as error:  # the agent must survive any content of a document
            return failure(f"The config cannot be run: {type(error).__name__}: {error}", 1)
        if command.stdout == ANSWER:
            self._bounded.append(BoundedFile(self._folder / ANSWER, 2 * LONGEST_ANSWER))
        cut_short = self._wait(launch, process)
        return launch.complete(
            _gather(launch, command, process.returncode, self._folder) if cut_short is None else cut_short
        )

    def complete_stop(self, why: str) -> Dict[str, Any]:
        """
        Run ``on_cancel`` and return the result of a run that an earlier agent began to stop.

        No process of the run remains.
        """
        reason = f"{why}: had to be killed"
        try:
            launch = Launch(self._entry, self._folder, self._variables)
        except HookError as error:
            return failure(f"{reason}; on_cancel could not be run: {error}", KILLED, self._folder)
        return self._run_on_cancel(launch, reason, KILLED)

    def _wait(self, launch: Launch, process: subprocess.Popen[bytes]) -> Optional[Dict[str, Any]]:
        """Wait for the process. Return the values to report if the agent ended it, or None if it ended by itself."""
        seconds = min(parse_seconds(inputs(self._entry).get("deploy_timeout")) or math.inf, self._longest)
        self._watch(process, self._control, seconds)
        if self._control.ended:
            return None
        if self._control.why is not None:
            return self._stop(launch, process, self._control.why)
        if end_session(process, GRACE_SECONDS) is None:
            process.wait()  # the other thread may not have the exit code yet
            return None
        _log.warning("run.timed_out: run %s has exceeded its %g s and was stopped", self._entry["id"], seconds)
        return failure(f"Timed out after {seconds:g} s", TIMED_OUT, self._folder)

    def _watch(self, process: subprocess.Popen[bytes], control: Control, seconds: float) -> None:
        """Bound the output until the process has ended, has to stop, or so many seconds have passed."""
        threading.Thread(target=_wait_for, args=(process, control), name="wait", daemon=True).start()
        until = time.monotonic() + seconds
        while not control.ended and control.why is None and time.monotonic() < until:
            control.wait(max(0.0, min(_LOOK_SECONDS, until - time.monotonic())))
            self._trim()

    def _stop(self, launch: Launch, process: subprocess.Popen[bytes], why: str) -> Optional[Dict[str, Any]]:
        """Stop the run. Return the values to report, or None if the process ended by itself before it was stopped."""
        _log.warning("run.stopped: run %s is %s and stopped", self._entry["id"], why.lower())
        try:
            write(self._folder / STOPPING, why.encode())
        except OSError as error:  # if the agent is killed now, the next one only reports an interrupted run
            _log.error("run.not_marked: cannot record that %s is being stopped: %s", self._entry["id"], error)
        ended = end_session(process, grace(self._entry), self._trim)
        if ended is None:
            self._folder.joinpath(STOPPING).unlink(missing_ok=True)
            process.wait()  # the other thread may not have the exit code yet
            return None
        code, words = ended
        return self._run_on_cancel(launch, f"{why}: {words}", code)

    def _run_on_cancel(self, launch: Launch, reason: str, code: int) -> Dict[str, Any]:
        """Run the config's ``on_cancel`` script. Return the values to report, with any failure of the script."""
        problem = None
        try:
            command = on_cancel(self._entry, self._folder)
            if command is not None:
                process, control = launch.start(command), Control()
                self._watch(process, control, _ON_CANCEL_SECONDS)
                if not control.ended:
                    end_session(process, GRACE_SECONDS)
                    problem = f"timed out after {_ON_CANCEL_SECONDS:g} s"
                elif process.returncode:
                    problem = f"ended with {process.returncode}"
        except (HookError, OSError) as error:
            problem = f"could not be run: {error}"
        except Exception as error:  # the agent must survive any content of a document
            problem = f"cannot be run: {type(error).__name__}: {error}"
        return failure(f"{reason}; on_cancel {problem}" if problem else reason, code, self._folder)

    def _trim(self) -> None:
        for file in self._bounded:
            file.trim()


def _wait_for(process: subprocess.Popen[bytes], control: Control) -> None:
    process.wait()
    control.end()


def _gather(launch: Launch, command: Program, code: int, folder: Path) -> Dict[str, Any]:
    problem = launch.problem()
    if problem is not None:
        return failure(problem, code or 1, folder)
    try:
        values = command.finish(code)
    except Exception as error:  # for example: an output that cannot be read
        return failure(f"What the run left cannot be read: {type(error).__name__}: {error}", code or 1, folder)
    return {"deploy_status_code": code, **read_streams(folder), **values}
