"""One run in progress: its execution, the request to stop it, the report of its progress, and its output afterwards."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Union

from stoker_agent.config import Config, Paths
from stoker_agent.delivered_hooks import provide
from stoker_agent.execute import Execution
from stoker_agent.hook_contract import HookError
from stoker_agent.launch import end_remaining_processes
from stoker_agent.live import Live, Signals, wants_progress
from stoker_agent.outbox import Outbox
from stoker_agent.output_files import AFTERWARDS, BoundedFile, tidy
from stoker_agent.programs import inputs
from stoker_agent.reports import failure
from stoker_agent.runs import Runs, source_of
from stoker_agent.termination import Control
from stoker_agent.transports import STOKER, Senders
from stoker_agent.web import Channel

_log = logging.getLogger("stoker-agent")
#: A thread that reports the progress of a run while it is active, and reads its files until the thread ends.
_ProgressReporter = Union[Live, Signals]


class RunEnv(NamedTuple):
    """
    What all runs of an agent share.

    ``config`` is its enrollment, and ``ca_file`` names the certificates that it trusts. ``outbox`` and ``senders`` take
    reports of progress.
    """

    paths: Paths
    config: Optional[Config]
    ca_file: Optional[str]
    outbox: Outbox
    senders: Senders


def identify_deployment(entry: Mapping[str, Any]) -> FrozenSet[str]:
    """
    Return what identifies the deployment of a run. Runs with a common member are of the same deployment.

    A deployment that a stack replaces has another id than its successor, but the same stack and resource.
    """
    values = inputs(entry)
    resource = values.get("deploy_stack_id"), values.get("deploy_resource_name")
    members = (entry.get("deployment_id"), resource if all(resource) else None)
    return frozenset(str(member) for member in members if member)


class ActiveRun:
    """
    A run that this process executes, or stops.

    ``entry`` is the document's entry with its source, and ``folder`` the directory of the run.
    """

    def __init__(self, entry: Mapping[str, Any], folder: Path) -> None:
        self.entry = entry
        self.id: str = entry["id"]
        #: The name of the source that listed the run.
        self.source = source_of(entry)
        self.folder = folder
        self.control = Control()
        self.deployment = identify_deployment(entry)
        #: Why the run must not execute, if another run on which it depends has failed.
        self.refusal: Optional[str] = None
        self._reporter: Optional[_ProgressReporter] = None
        self._streams: Mapping[str, BoundedFile] = {}

    @property
    def is_followed(self) -> bool:
        """Whether a progress reporter still reads the run's files, which it may do after the end of the run."""
        return self._reporter is not None and self._reporter.is_alive()

    def execute(self, env: RunEnv, log_bytes: int) -> Dict[str, Any]:
        """Execute the run and return the values to report. ``log_bytes`` limits the size of each output stream."""
        paths = env.paths
        execution = Execution(self.entry, paths.variables, self.folder, self.control, log_bytes)
        self._streams = execution.streams
        try:
            if self.control.why is not None:
                return execution.execute(paths.hooks)
            if self.refusal is not None:
                return failure(self.refusal, 1)
            name, group = self.entry.get("name"), self.entry.get("group")
            _log.info("run.started: run %s of %s starts (group %s)", self.id, name, group)
            self._reporter = self._start_reporter(env, log_bytes)
            began = time.monotonic()
            hooks = provide(self.entry, self.folder, self.control, paths, env.config, env.ca_file)
            values = execution.execute(hooks or paths.hooks)
            values["deploy_run_seconds"] = round(time.monotonic() - began, 3)
        except HookError as error:
            return failure(str(error), error.code)
        except Exception as error:  # for example: no more threads or file descriptors
            _log.exception("run.failed: run %s failed", self.id)
            with contextlib.suppress(OSError):  # of the same kind
                end_remaining_processes(self.folder)
            return failure(f"The run could not be followed: {type(error).__name__}: {error}", 1)
        return values

    def shrink(self) -> None:
        """Release the middle of the output of a run that has ended, for example because the disk is full."""
        for stream in self._streams.values():
            stream.shrink()

    def end_reporter(self, values: Mapping[str, Any]) -> None:
        """Stop the progress reporter, which may wait some seconds for the last output. ``values``: the run's result."""
        if self._reporter is not None:
            is_reported = inputs(self.entry).get("deploy_signal_transport") != "NO_SIGNAL"
            self._reporter.end(values if is_reported else {})

    def _start_reporter(self, env: RunEnv, log_bytes: int) -> Optional[_ProgressReporter]:
        """Start a progress reporter, if the run's source accepts progress."""
        if env.config is not None and self.source == STOKER:
            return Live(Channel(env.config), self.id, self.folder, self._streams, log_bytes)
        sender = env.senders.of(self.entry) if wants_progress(self.entry) else None
        return None if sender is None else Signals(env.outbox, sender, self.id, self.folder)


class EndedRuns:
    """
    The output of ended runs on disk: truncated after the report, and released if the disk is full.

    ``changed`` is the agent's condition, which protects ``active``, the runs in progress.
    """

    def __init__(self, runs: Runs, active: Mapping[str, ActiveRun], changed: threading.Condition) -> None:
        self._runs = runs
        self._active = active
        self._changed = changed
        #: Ended runs whose progress reporters still read their files.
        self._followed: List[ActiveRun] = []

    def add(self, run: ActiveRun) -> None:
        """Add a run that has ended. The caller holds ``changed``."""
        if run.is_followed:
            self._followed.append(run)

    def tidy(self) -> None:
        """Truncate the output files of completed runs as soon as their progress reporters have ended."""
        self._truncate(self._runs.list_folders("acknowledged"))

    def release(self) -> None:
        """Release output, because the disk is full: results and new runs are more important."""
        with self._changed:
            followed = list(self._followed)
        for run in followed:
            run.shrink()
        self._truncate(self._runs.list_folders("acknowledged"), 0)
        self._truncate(self._runs.list_folders())

    def _truncate(self, folders: Sequence[Path], kept: int = AFTERWARDS) -> None:
        with self._changed:
            self._followed = [run for run in self._followed if run.is_followed]
            in_use = {*self._active, *(run.id for run in self._followed)}
        for folder in folders:
            if folder.name not in in_use:
                tidy(folder, kept)
