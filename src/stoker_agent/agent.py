"""The agent at work: what is new in the document runs, one after the other, each once."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

from stoker_agent.channel import Channel
from stoker_agent.config import Config, Paths, Unusable
from stoker_agent.execute import INTERRUPTED, end_leftovers, execute, failed
from stoker_agent.following import Following
from stoker_agent.live import Live
from stoker_agent.poll import Poller
from stoker_agent.programs import inputs
from stoker_agent.report import Reporter
from stoker_agent.runs import Runs
from stoker_agent.senders import Senders
from stoker_agent.settings import Settings
from stoker_agent.sources import STOKER, Document, Entries, Source
from stoker_agent.web import Unreachable

_log = logging.getLogger("stoker-agent")
_LAST_RUN_SECONDS, _LAST_REPORT_SECONDS = 10.0, 2.0
_DISK_PAUSE_SECONDS = 5.0
_REASON = "Interrupted: the agent stopped while this config was running"


class _Newest(NamedTuple):
    """What is to run, and which source says so."""

    entries: Entries
    source: str


class Agent:
    """``config`` None: not enrolled, so that all it knows comes from other sources."""

    def __init__(self, config: Optional[Config], settings: Settings, paths: Paths) -> None:
        self._config = config
        self._paths = paths
        self._runs = Runs(paths.state)
        self._following = Following(config, settings, paths)
        self._poller = Poller(self._following.sources, self._on_document, settings.polling)
        trusted = settings.ca_file or (config.ca_file if config else None)
        self._reporter = Reporter(Senders(config, trusted), self._runs, self._poller.hurry, settings.polling)
        self._changed = threading.Condition()
        self._newest = _Newest([], STOKER)
        self._stopping = False
        self._running = False

    def run(self) -> None:
        """Until SIGTERM or SIGINT. A run under way gets a few seconds to end."""
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        # Written to at once, wherever this thread is: a handler of ours would not run once it waits in a read.
        signal.set_wakeup_fd(tell)
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda _, __: None)
        self.recover()
        self._reporter.start()
        threading.Thread(target=self._poller.run, name="poll", daemon=True).start()
        worker = threading.Thread(target=self._work, name="work", daemon=True)
        worker.start()
        os.read(told, 1)
        self._poller.stop()
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        worker.join(_LAST_RUN_SECONDS)
        if self._running:
            _log.warning("a run is still under way; it is reported as interrupted at the next start")
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
        while (found := self._next()) is not None:
            self._do(*found)
        self._reporter.wait()

    def recover(self) -> None:
        """What an agent before this one began and did not end was interrupted."""
        for id in self._runs.interrupted():
            end_leftovers(id)
            try:
                entry = self._runs.entry(id)
            except (OSError, ValueError):
                entry = {"id": id}
            if inputs(entry).get("deploy_on_interrupt") == "RERUN":
                _log.info("run %s was interrupted and is begun again if it is still wanted", id)
                self._runs.undo(id)
            else:
                _log.warning("run %s was interrupted", id)
                self._finish(entry, failed(_REASON, INTERRUPTED, self._runs.folder(id)))

    def _on_document(self, document: Document, source: str) -> Optional[Sequence[Source]]:
        with self._changed:
            self._newest = _Newest(document.entries, source)
            self._changed.notify_all()
        try:
            self._runs.forget_all_but({str(entry.get("id")) for entry in document.entries})
        except OSError as error:
            _log.error("cannot tidy up: %s", error)
        return self._following.told(document.collect)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._next() is not None)
                found = self._next()
                if self._stopping or found is None:
                    return
                self._running = True
            try:
                self._do(*found)
            finally:
                self._running = False

    def _next(self) -> Optional[Tuple[Mapping[str, Any], str]]:
        """The first of the newest document that has not begun; what was withdrawn meanwhile is not in it."""
        newest = self._newest
        for entry in newest.entries:
            try:
                if not self._runs.known(entry["id"]):
                    return entry, newest.source
            except (KeyError, TypeError, ValueError):
                continue  # no run of ours can have such an id
        return None

    def _do(self, entry: Mapping[str, Any], source: str) -> None:
        id = entry["id"]
        try:
            folder = self._runs.begin(entry, source)
        except OSError as error:
            # Not begun: what is not on disk could run twice.
            _log.error("cannot begin run %s: %s", id, error)
            threading.Event().wait(_DISK_PAUSE_SECONDS)
            return
        _log.info("run %s of %s begins (group %s)", id, entry.get("name"), entry.get("group"))
        live = Live(Channel(self._config), id, folder) if self._config and source == STOKER else None
        values = execute(entry, self._paths.hooks, folder)
        if live is not None:
            live.end()
        self._finish(entry, values)
        _log.info("run %s ended with %s", id, values.get("deploy_status_code"))  # and its result is on disk

    def _finish(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        if inputs(entry).get("deploy_signal_transport") != "NO_SIGNAL":
            self._reporter.add(entry["id"], values)
            return
        try:
            # In this order: a result that stands alone is one to report.
            self._runs.acknowledge(entry["id"])
            self._runs.end(entry["id"], values)
        except OSError as error:
            _log.error("cannot keep the result of %s: %s", entry["id"], error)


def hold(paths: Paths) -> int:
    """One agent a root. Raises Unusable when another one is there."""
    handle = os.open(str(paths.state / "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise Unusable(f"another agent runs for {paths.state}") from None
    return handle
