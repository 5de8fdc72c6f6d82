"""The agent's main loop: starts each new run of the document once, with the concurrency that the document sets."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import select
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from stoker_agent.active_run import ActiveRun, EndedRuns, RunEnv, identify_deployment
from stoker_agent.checks import Checks
from stoker_agent.config import Config, Paths, Unusable
from stoker_agent.dependencies import Dependencies
from stoker_agent.disk import PAUSE_SECONDS, Disk
from stoker_agent.execute import Execution
from stoker_agent.facts_report import FactsReporter
from stoker_agent.hook_contract import RESTART
from stoker_agent.launch import end_remaining_processes
from stoker_agent.outbox import Outbox
from stoker_agent.poll import Poller, SourceSet
from stoker_agent.programs import has_fact, resumes
from stoker_agent.reports import INTERRUPTED, failure
from stoker_agent.results import Results
from stoker_agent.runs import Runs, count_interruptions, source_of, with_source
from stoker_agent.self_update import restart
from stoker_agent.service_manager import ServiceManager
from stoker_agent.settings import Settings
from stoker_agent.status import StatusFile
from stoker_agent.termination import CANCELLED, WITHDRAWN, was_stopping
from stoker_agent.transports import STOKER, Document, Senders, Source
from stoker_agent.web import Channel, Unreachable

_log = logging.getLogger("stoker-agent")
#: The key of the write that begins a run, and of a test whether one can begin.
_PROBE = "the start of a run"
_LAST_RUN_SECONDS, _LAST_REPORT_SECONDS = 10.0, 2.0
#: The pause of periodic work. systemd's limit for signs of life (``WatchdogSec``) is five times as long.
_UPKEEP_SECONDS = 60.0
_REASON = "Interrupted: the agent stopped while this config was running"


class Outcome(NamedTuple):
    """Numbers of runs that ended, of those that failed, and of results that no receiver has accepted yet."""

    runs: int = 0
    failed: int = 0
    unreported: int = 0


class Agent:
    """
    Fetches documents, starts runs and reports their results.

    ``config`` is the enrollment, or None if this server is not enrolled; all documents then come from other sources.
    ``settings`` lists the sources. ``paths`` names the agent's directories. ``credential`` is the key with which the
    agent verifies published documents; with None, the agent accepts them unverified. ``observer`` records contacts,
    ``manager`` is the service manager that has started the agent.
    """

    def __init__(
        self,
        config: Optional[Config],
        settings: Settings,
        paths: Paths,
        credential: Optional[str],
        observer: StatusFile,
        manager: ServiceManager,
    ) -> None:
        self._manager = manager
        self._runs = Runs(paths.state)
        #: Runs in progress, by id.
        self._active: Dict[str, ActiveRun] = {}
        self._changed = threading.Condition()
        self._ended = EndedRuns(self._runs, self._active, self._changed)
        #: Truncates the output of runs that were reported.
        self.tidy = self._ended.tidy
        self._dependencies = Dependencies(paths.state / "dependencies.json", self._runs)
        channel = None if config is None else Channel(config)
        self._outbox = Outbox(channel, settings.polling)
        self._source_set = SourceSet(config, settings, paths, credential, self._outbox)
        self._poller = Poller(self._source_set.sources, self._on_document, settings.polling, observer)
        ca_file = settings.ca_file or (config.ca_file if config else None)
        senders = Senders(channel, ca_file)
        self._env = RunEnv(paths, config, ca_file, self._outbox, senders)
        self._disk = Disk(paths.state / "runs", self._outbox, self._changed, self._ended.release)
        self._results = Results(self._runs, self._disk, self._outbox, senders, self._active, self._poller.hurry)
        #: The newest document, whose entries have the name of its source.
        self._document = Document([], {})
        self._stopping = False
        #: Whether this process ends when nothing is to run: checks recur, so it does none.
        self._runs_once = False
        #: Counts the runs that this process has ended.
        self._outcome = Outcome()
        self._paths = paths
        self._checks = Checks(self._outbox, paths, self._active)
        self._facts: Optional[FactsReporter] = None
        #: Whether a run requests that the agent executes its program again, and the pipe that wakes the main thread.
        self._restarts = False
        self._wake_reader, self._wake_writer = os.pipe()
        if config is not None:
            self._facts = FactsReporter(config, paths, self._outbox, self._active, self._disk)

    def run(self) -> None:
        """Run until SIGTERM or SIGINT. Active runs then have ten seconds to end."""
        os.set_blocking(self._wake_writer, False)
        # Signals write to this descriptor at once. A Python handler might not run before the read below blocks.
        signal.set_wakeup_fd(self._wake_writer)
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda _, __: None)
        self.recover()
        self._outbox.start()
        loops = [
            threading.Thread(target=self._poller.run, name="poll", daemon=True),
            threading.Thread(target=self._work, name="work", daemon=True),
        ]
        for loop in loops:
            loop.start()
        self._disk.write(_PROBE, self._disk.probe)
        threading.Thread(target=self._keep_up, args=(loops,), name="upkeep", daemon=True).start()
        self._manager.notify("READY=1")
        if self._facts is not None:
            self._facts.start()
        os.read(self._wake_reader, 1)
        if not self._restarts:  # systemd would kill the new program when its limit for a stop has passed
            self._manager.notify("STOPPING=1")
        self._poller.stop()
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._active, _LAST_RUN_SECONDS)
            left = len(self._active)
        if left:
            _log.warning(
                "agent.stopped: %d runs are still in progress; the next start reports them as interrupted", left
            )
        else:
            self._outbox.wait(_LAST_REPORT_SECONDS)
        if not self._disk.retry():
            _log.error("agent.stopped: results that are neither stored nor reported are lost: %s", self._disk.reason)
        if self._restarts:
            restart(self._paths, self._manager, lambda: bool(select.select([self._wake_reader], [], [], 0)[0]))

    def once(self, report_seconds: float, facts_seconds: Optional[float] = None) -> Outcome:
        """
        Fetch the document, run each new entry and report the results, until the document has no new entry.

        ``report_seconds`` limits each wait for the receivers of the results. With ``facts_seconds``, the agent then
        sends its facts, and waits so long for the answer. Raises Unusable if no source answers, or if the agent cannot
        write its files.
        """
        self.recover()
        self._runs_once = True
        self._outbox.start()
        before = -1
        while before < self._outcome.runs:
            before = self._outcome.runs
            try:
                self._poller.once()
            except Unreachable as error:
                raise Unusable(f"cannot poll: {error}") from None
            while self._begin_next(until=lambda: not self._active):
                pass
            self._outbox.wait(report_seconds)
        if self._facts is not None and facts_seconds is not None:
            self._facts.report()  # after the runs, which may have changed the facts
            self._outbox.wait(facts_seconds)
        if self._restarts:
            restart(self._paths, self._manager, lambda: False)
        if not self._disk.retry():
            raise Unusable(f"no run can start: {self._disk.reason}")
        return self._outcome._replace(unreported=len(self._runs.list_unreported()))

    def _keep_up(self, loops: Sequence[threading.Thread]) -> None:
        """
        Do the periodic work, and tell systemd that the agent is alive.

        If the agent hangs (``tidy`` takes its lock), or one of the threads ``loops`` has ended, systemd restarts it.
        """
        while True:
            self.tidy()
            self._results.repeat_lost()
            if all(thread.is_alive() for thread in loops):
                self._manager.notify("WATCHDOG=1")
            time.sleep(_UPKEEP_SECONDS)

    def recover(self) -> None:
        """End the runs that an earlier agent process began and did not end: report, resume the stop, or run again."""
        self._checks.recover()
        for id in self._runs.list_interrupted():
            folder = self._runs.folder(id)
            end_remaining_processes(folder)
            entry = self._runs.entry(id)
            why = was_stopping(folder)
            if why is not None:
                _log.warning("run.interrupted: run %s was being stopped", id)
                # The config's ``on_cancel`` script may take a minute, so a thread runs it.
                run = self._active[id] = ActiveRun(entry, folder)
                threading.Thread(target=self._end_stopped, args=(run, why), name=id, daemon=True).start()
            elif resumes(entry, self._paths.hooks) and self._runs.undo(id):
                _log.info(
                    "run.interrupted: run %s was interrupted and starts again if the document still contains it", id
                )
            else:
                _log.warning("run.interrupted: run %s was interrupted", id)
                count = count_interruptions(folder)
                reason = f"{_REASON}, {count} times" if count else _REASON
                self._finish(entry, failure(reason, INTERRUPTED, folder))

    def _on_document(self, document: Document, source: str) -> Optional[Sequence[Source]]:
        document = document._replace(entries=[with_source(entry, source) for entry in document.entries])
        entries = {entry["id"]: entry for entry in document.entries}
        with self._changed:
            self._document = document
            self._dependencies.update(entries)
            for id, run in self._active.items():
                # Only the source of a run withdraws it; another source may never have listed it.
                if run.source != source or not document.lists:
                    continue
                if id not in entries:
                    run.control.stop(WITHDRAWN)
                elif _is_cancelled(entries[id]):
                    run.control.stop(CANCELLED)
            self._changed.notify_all()
        try:
            self._runs.forget_all_but(entries)
        except OSError as error:
            _log.error("cleanup.failed: cannot delete old files: %s", error)
        if source == STOKER:
            self._results.observe(entries)
            if not self._runs_once:
                self._checks.update(document.checks)
        return self._source_set.update(document.collect)

    def _work(self) -> None:
        while self._begin_next(until=lambda: False):
            pass

    def _begin_next(self, until: Callable[[], bool]) -> bool:
        """
        Wait until a run may begin, and start it.

        Returns False if the agent stops, or if no run is pending and ``until`` returns true.
        """
        if not self._disk.retry():
            self._disk.report(_list_pending(self._document, self._runs, self._active))
        reason = self._disk.reason
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._next() is not None or until() or self._disk.reason != reason,
                PAUSE_SECONDS if reason else None,
            )
            entry = None if self._stopping else self._next()
            if entry is None:
                return not (self._stopping or until())
            log_bytes = self._document.log_bytes
            run = self._active[entry["id"]] = ActiveRun(entry, self._runs.folder(entry["id"]))
            if _is_cancelled(entry):
                run.control.stop(CANCELLED)
            run.refusal = self._dependencies.find_failure(run.id)
        if not self._record_start(run):
            return True
        try:
            threading.Thread(target=self._do, args=(run, log_bytes), name=run.id, daemon=True).start()
        except RuntimeError as error:  # no more threads: the run has begun, so its failure must be reported
            self._finish(entry, failure(f"The run could not be begun: {error}", 1))
            self._forget(run)
        return True

    def _record_start(self, run: ActiveRun) -> bool:
        """Store that the run begins. Without its entry on disk, the run could run twice, so it does not begin then."""

        def begin() -> None:
            _ensure_folders(self._paths)
            self._runs.begin(run.entry)

        if self._disk.write(_PROBE, begin, lambda: self._disk.probe(run.entry)):
            return True
        if _is_cancelled(run.entry):
            self._runs.remember(run.id)  # executes nothing; after a restart, the agent reports it again
            return True
        with self._changed:
            del self._active[run.id]
        return False

    def _next(self) -> Optional[Mapping[str, Any]]:
        """Return the first entry that may begin. Withdrawn entries are not in the newest document."""
        document = self._document
        room = len(self._active) < document.concurrency and not self._disk.reason
        room = room and not any(_is_alone(run.entry, self._paths) for run in self._active.values())
        busy = {member for run in self._active.values() for member in run.deployment}
        for entry in document.entries:
            new = entry["id"] not in self._active and not self._runs.has_begun(entry["id"])
            # A cancelled entry only reports its result, so it does not count against the concurrency.
            if new and _is_cancelled(entry):
                return entry
            # Runs of one deployment never overlap, even while one of them is stopped.
            is_free = new and room and busy.isdisjoint(identify_deployment(entry))
            if is_free and not self._dependencies.is_waiting(entry["id"]):
                # A run that executes alone waits for those before it, and those behind it wait for it.
                if not _is_alone(entry, self._paths) or not self._active:
                    return entry
                room = False
        return None

    def _do(self, run: ActiveRun, log_bytes: int) -> None:
        try:
            values = run.execute(self._env, log_bytes)
            if values.pop(RESTART, False) and _is_alone(run.entry, self._paths):
                with self._changed:
                    self._stopping = self._restarts = True
                os.write(self._wake_writer, b"\0")
                return  # counts as interrupted, and begins again in the program that the main thread executes
            # Store the result before waiting for the reporter: an ended run must not count as interrupted.
            self._keep(run.entry, values)
            run.end_reporter(values)
            self._results.announce(run.entry)
            _log.info("run.ended: run %s ended with %s", run.id, values.get("deploy_status_code"))
        finally:
            self._forget(run)

    def _end_stopped(self, run: ActiveRun, why: str) -> None:
        try:
            execution = Execution(run.entry, self._paths.variables, run.folder, run.control)
            self._finish(run.entry, execution.complete_stop(why))
        finally:
            self._forget(run)

    def _forget(self, run: ActiveRun) -> None:
        with self._changed:
            del self._active[run.id]
            self._ended.add(run)
            self._changed.notify_all()
        if self._facts is not None:
            self._facts.announce()

    def _finish(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self._keep(entry, values)
        self._results.announce(entry)

    def _keep(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Store the result of a run until it is reported."""
        with self._changed:
            runs, failed, _ = self._outcome
            has_failed = str(values.get("deploy_status_code", 0)) != "0"
            self._outcome = Outcome(runs + 1, failed + has_failed)
        self._results.keep(entry, values)


def _list_pending(document: Document, runs: Runs, active: Mapping[str, ActiveRun]) -> List[str]:
    """Return the ids of Stoker's runs that have not begun."""
    listed = [entry for entry in document.entries if source_of(entry) == STOKER and not _is_cancelled(entry)]
    ids = [entry["id"] for entry in listed]
    return [id for id in ids if id not in active and not runs.has_begun(id)]


def _ensure_folders(paths: Paths) -> None:
    """Create the agent's directories and its lock again, if they were deleted. Raises OSError."""
    if not paths.state.joinpath("lock").exists():
        paths.make()
        with contextlib.suppress(Unusable):
            lock(paths)


def _is_alone(entry: Mapping[str, Any], paths: Paths) -> bool:
    return has_fact(entry, paths.hooks, "ALONE")


def _is_cancelled(entry: Mapping[str, Any]) -> bool:
    return entry.get("cancel") is True


def lock(paths: Paths) -> int:
    """
    Take the lock that limits a root to one agent, and return its file descriptor.

    An agent without write access starts nevertheless, to say so at Stoker; -1 if it cannot take the lock. Raises
    Unusable if another agent holds the lock.
    """
    path = str(paths.state / "lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        print(f"stoker-agent: cannot write {path}: {error.strerror}; no run starts until it can", file=sys.stderr)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise Unusable(f"another agent runs for {paths.state}") from None
    # Commands that end this agent read the id. On a full disk, the agent runs nevertheless.
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    return handle
