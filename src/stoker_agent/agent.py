"""The agent at work: what is new in the document runs, one after the other, each once."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
from typing import Any, Mapping, Optional

from stoker_agent.channel import Channel, Unreachable
from stoker_agent.config import Config, Paths, Unusable
from stoker_agent.execute import INTERRUPTED, end_leftovers, execute, failed
from stoker_agent.live import Live
from stoker_agent.poll import Entries, Poller
from stoker_agent.programs import inputs
from stoker_agent.report import Reporter
from stoker_agent.runs import Runs

_log = logging.getLogger("stoker-agent")
_LAST_RUN_SECONDS, _LAST_REPORT_SECONDS = 10.0, 2.0
_DISK_PAUSE_SECONDS = 5.0
_REASON = "Interrupted: the agent stopped while this config was running"


class Agent:
    def __init__(self, config: Config, paths: Paths) -> None:
        self._config = config
        self._paths = paths
        self._runs = Runs(paths.state)
        self._reporter = Reporter(Channel(config), self._runs)
        self._poller = Poller(Channel(config), paths.hooks, self._on_document)
        self._changed = threading.Condition()
        self._entries: Entries = []
        self._stopping = False
        self._running = False

    def run(self) -> None:
        """Until SIGTERM or SIGINT. A run under way gets a few seconds to end."""
        told, tell = os.pipe()  # a signal between a look at a flag and a pause would be missed
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda _, __: os.write(tell, b"."))
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
            self._poller.once(0)
        except Unreachable as error:
            raise Unusable(f"cannot poll: {error}") from None
        while (entry := self._next()) is not None:
            self._do(entry)
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

    def _on_document(self, entries: Entries) -> None:
        with self._changed:
            self._entries = entries
            self._changed.notify_all()
        try:
            self._runs.forget_all_but({str(entry.get("id")) for entry in entries})
        except OSError as error:
            _log.error("cannot tidy up: %s", error)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._next() is not None)
                entry = self._next()
                if self._stopping or entry is None:
                    return
                self._running = True
            try:
                self._do(entry)
            finally:
                self._running = False

    def _next(self) -> Optional[Mapping[str, Any]]:
        """The first of the newest document that has not begun; what was withdrawn meanwhile is not in it."""
        for entry in self._entries:
            try:
                if not self._runs.known(entry["id"]):
                    return entry
            except (KeyError, TypeError, ValueError):
                continue  # no run of ours can have such an id
        return None

    def _do(self, entry: Mapping[str, Any]) -> None:
        id = entry["id"]
        try:
            folder = self._runs.begin(entry)
        except OSError as error:
            # Not begun: what is not on disk could run twice.
            _log.error("cannot begin run %s: %s", id, error)
            threading.Event().wait(_DISK_PAUSE_SECONDS)
            return
        _log.info("run %s of %s begins (group %s)", id, entry.get("name"), entry.get("group"))
        live = Live(Channel(self._config), id, folder)
        values = execute(entry, self._paths.hooks, folder)
        live.end()
        _log.info("run %s ended with %s", id, values.get("deploy_status_code"))
        self._finish(entry, values)

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
