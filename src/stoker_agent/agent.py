"""The agent at work: what is new in the document runs, each once, as many at a time as the document says."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence

from stoker_agent.channel import Channel
from stoker_agent.config import Config, Paths, Unusable
from stoker_agent.execute import INTERRUPTED, end_leftovers, execute, failed, stopped_before, was_stopping
from stoker_agent.following import Following
from stoker_agent.keeping import Kept, tidy
from stoker_agent.live import Live
from stoker_agent.poll import Poller
from stoker_agent.programs import inputs
from stoker_agent.progress import Signals, Telling, wants_progress
from stoker_agent.report import Reporter
from stoker_agent.runs import Runs, source_of
from stoker_agent.senders import Senders
from stoker_agent.settings import Settings
from stoker_agent.sources import STOKER, Document, Source
from stoker_agent.stopping import CANCELLED, WITHDRAWN, Control
from stoker_agent.web import Unreachable

_log = logging.getLogger("stoker-agent")
_LAST_RUN_SECONDS, _LAST_REPORT_SECONDS = 10.0, 2.0
_DISK_PAUSE_SECONDS = 5.0
_TIDY_SECONDS = 60.0
_REASON = "Interrupted: the agent stopped while this config was running"


class _Newest(NamedTuple):
    """What is to run, and which source says so."""

    document: Document
    source: str


class Agent:
    """``config`` None: not enrolled, so that all it knows comes from other sources."""

    def __init__(self, config: Optional[Config], settings: Settings, paths: Paths) -> None:
        self._config = config
        self._paths = paths
        self._runs = Runs(paths.state)
        self._following = Following(config, settings, paths)
        self._poller = Poller(self._following.sources, self._on_document, settings.polling)
        self._trusted = settings.ca_file or (config.ca_file if config else None)
        self._reporter = Reporter(Senders(config, self._trusted), self._runs, self._poller.hurry, settings.polling)
        self._changed = threading.Condition()
        self._newest = _Newest(Document([], {}), STOKER)
        self._stopping = False
        #: Those under way, by id; and who tells of one, which may take longer than the run.
        self._running: Dict[str, Control] = {}
        self._telling: Dict[str, Telling] = {}

    def run(self) -> None:
        """Until SIGTERM or SIGINT. Runs under way get a few seconds to end."""
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        # Written to at once, wherever this thread is: a handler of ours would not run once it waits in a read.
        signal.set_wakeup_fd(tell)
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda _, __: None)
        self.recover()
        self._reporter.start()
        threading.Thread(target=self._poller.run, name="poll", daemon=True).start()
        threading.Thread(target=self._work, name="work", daemon=True).start()
        threading.Thread(target=self._tidy, name="tidy", daemon=True).start()
        os.read(told, 1)
        self._poller.stop()
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running, _LAST_RUN_SECONDS)
            left = len(self._running)
        if left:
            _log.warning("%d runs are still under way; they are reported as interrupted at the next start", left)
        else:
            self._reporter.wait(_LAST_REPORT_SECONDS)

    def once(self) -> None:
        """One look at the document, everything new in it, every report; then return. Raises Unusable."""
        self.recover()
        self._reporter.start()
        try:
            self._poller.once()
        except Unreachable as error:
            raise Unusable(f"cannot poll: {error}") from None
        while self._begin_next(until=lambda: not self._running):
            pass
        self._reporter.wait()

    def recover(self) -> None:
        """What an agent before this one began and did not end was interrupted, or was being stopped."""
        for id in self._runs.interrupted():
            folder = self._runs.folder(id)
            end_leftovers(folder)
            try:
                entry = self._runs.entry(id)
            except (OSError, ValueError):
                entry = {"id": id}
            why = was_stopping(folder)
            if why is not None:
                _log.warning("run %s was being stopped", id)
                # What it wants to be run then may take its time.
                control = self._running[id] = Control(source_of(entry))
                threading.Thread(target=self._end_stopped, args=(entry, why, control), name=id, daemon=True).start()
            elif inputs(entry).get("deploy_on_interrupt") == "RERUN":
                _log.info("run %s was interrupted and is begun again if it is still wanted", id)
                self._runs.undo(id)
            else:
                _log.warning("run %s was interrupted", id)
                self._finish(entry, failed(_REASON, INTERRUPTED, folder))

    def tidy(self) -> None:
        """Runs that are done with keep little of what they wrote, once it was told to whoever wants it."""
        for id in [id for id, telling in list(self._telling.items()) if telling.over]:
            del self._telling[id]
        for folder in self._runs.done():
            if folder.name not in self._telling:
                tidy(folder)

    def _on_document(self, document: Document, source: str) -> Optional[Sequence[Source]]:
        entries = {str(entry.get("id")): entry for entry in document.entries}
        with self._changed:
            self._newest = _Newest(document, source)
            for id, control in self._running.items():
                # What another source does not list may well be wanted by the one that it came from.
                if control.source != source or not document.lists:
                    continue
                if id not in entries:
                    control.stop(WITHDRAWN)
                elif _is_cancelled(entries[id]):
                    control.stop(CANCELLED)
            self._changed.notify_all()
        try:
            self._runs.forget_all_but(entries)
        except OSError as error:
            _log.error("cannot tidy up: %s", error)
        return self._following.told(document.collect)

    def _work(self) -> None:
        while self._begin_next(until=lambda: False):
            pass

    def _begin_next(self, until: Callable[[], bool]) -> bool:
        """The next run begins once it may; False when the agent stops, or ``until`` holds and there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._next() is not None or until())
            entry = None if self._stopping else self._next()
            if entry is None:
                return False
            newest = self._newest
            control = self._running[entry["id"]] = Control(newest.source)
            if _is_cancelled(entry):
                control.stop(CANCELLED)
        try:
            folder = self._runs.begin(entry, newest.source)
        except OSError as error:
            # Not begun: what is not on disk could run twice.
            _log.error("cannot begin run %s: %s", entry["id"], error)
            threading.Event().wait(_DISK_PAUSE_SECONDS)
            self._ended(entry["id"])
            return True
        try:
            threading.Thread(
                target=self._do, args=(entry, newest, folder, control), name=str(entry["id"]), daemon=True
            ).start()
        except RuntimeError as error:  # no more threads: of a run that was begun, somebody has to hear
            self._keep(entry, failed(f"The run could not be begun: {error}", 1))
            self._reporter.announce()
            self._ended(entry["id"])
        return True

    def _next(self) -> Optional[Mapping[str, Any]]:
        """The first of the newest document that has not begun; what was withdrawn meanwhile is not in it."""
        document = self._newest.document
        room = len(self._running) < document.concurrency
        for entry in document.entries:
            try:
                new = entry["id"] not in self._running and not self._runs.known(entry["id"])
            except (KeyError, TypeError, ValueError):
                continue  # no run of ours can have such an id
            # What is never to begin needs nobody's place.
            if new and (room or _is_cancelled(entry)):
                return entry
        return None

    def _do(self, entry: Mapping[str, Any], newest: _Newest, folder: Path, control: Control) -> None:
        id = entry["id"]
        try:
            values = self._executed(entry, newest, folder, control)
            # Before anybody is waited for: what has ended must not count as interrupted.
            self._keep(entry, values)
            if id in self._telling:
                self._telling[id].end()
            self._reporter.announce()
            _log.info("run %s ended with %s", id, values.get("deploy_status_code"))
        finally:
            self._ended(id)

    def _executed(self, entry: Mapping[str, Any], newest: _Newest, folder: Path, control: Control) -> Dict[str, Any]:
        most = newest.document.log_bytes
        streams = {name: Kept(folder / name, most) for name in ("stdout", "stderr")}
        try:
            if control.why is not None:
                return execute(entry, self._paths.hooks, folder, control, list(streams.values()))
            _log.info("run %s of %s begins (group %s)", entry["id"], entry.get("name"), entry.get("group"))
            self._tell(entry, newest.source, folder, streams, most)
            began = time.monotonic()
            values = execute(entry, self._paths.hooks, folder, control, list(streams.values()))
            values["deploy_run_seconds"] = round(time.monotonic() - began, 3)
        except Exception as error:  # no more threads or files, say
            _log.exception("run %s", entry["id"])
            end_leftovers(folder)
            return failed(f"The run could not be followed: {type(error).__name__}: {error}", 1)
        return values

    def _tell(
        self, entry: Mapping[str, Any], source: str, folder: Path, streams: Mapping[str, Kept], most: int
    ) -> None:
        """Have somebody say how far the run is, while it goes on."""
        if self._config is not None and source == STOKER:
            self._telling[entry["id"]] = Live(Channel(self._config), entry["id"], folder, streams, most)
        elif wants_progress(entry):
            self._telling[entry["id"]] = Signals(Senders(self._config, self._trusted), entry, source, folder)

    def _end_stopped(self, entry: Mapping[str, Any], why: str, control: Control) -> None:
        try:
            self._finish(entry, stopped_before(entry, self._runs.folder(entry["id"]), why))
        finally:
            self._ended(entry["id"])

    def _ended(self, id: str) -> None:
        with self._changed:
            del self._running[id]
            self._changed.notify_all()

    def _finish(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self._keep(entry, values)
        self._reporter.announce()

    def _keep(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """The result of a run, until somebody has it."""
        if inputs(entry).get("deploy_signal_transport") != "NO_SIGNAL":
            self._reporter.keep(entry["id"], values)
            return
        try:
            # In this order: a result that stands alone is one to report.
            self._runs.acknowledge(entry["id"])
            self._runs.end(entry["id"], values)
        except OSError as error:
            _log.error("cannot keep the result of %s: %s", entry["id"], error)

    def _tidy(self) -> None:
        while True:
            self.tidy()
            time.sleep(_TIDY_SECONDS)


def _is_cancelled(entry: Mapping[str, Any]) -> bool:
    return entry.get("cancel") is True


def hold(paths: Paths) -> int:
    """One agent a root. Raises Unusable when another one is there."""
    handle = os.open(str(paths.state / "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise Unusable(f"another agent runs for {paths.state}") from None
    return handle
