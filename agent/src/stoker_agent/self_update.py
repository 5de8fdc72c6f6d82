"""
Replaces the agent's program by the one that Stoker offers.

The steps: download the program and verify its digest, start it in a self-test, let the active runs end, keep the old
file, replace the file and execute the new program in the same process. A process of the old program (``update_guard``)
restores the old file if the new program does not reach Stoker in time. The record in ``<state>/update.json`` says how
far the update is, for all of these processes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from stoker_agent import program_file
from stoker_agent.backoff import Backoff
from stoker_agent.channel import Channel, call_once
from stoker_agent.config import Config, Paths
from stoker_agent.drain import Drain, Stopped
from stoker_agent.files import read_map, write, write_json
from stoker_agent.outbox import Outbox
from stoker_agent.service_manager import ServiceManager
from stoker_agent.web import Limit, Unreachable

_log = logging.getLogger("stoker-agent")

RESTARTING, COMPLETE, FAILED, ROLLED_BACK = "RESTARTING", "COMPLETE", "FAILED", "ROLLED_BACK"
_PATH = "/agent/v1/stoker-agent.pyz"
_PROGRAM = Limit("the program", 16 * 1024 * 1024)
_TEST_SECONDS = 60.0
_TRIES = 5
_RETRY_SECONDS = 5.0
_REPORT_PATH = "/agent/v1/upgrade"


class UpdateFailed(Exception):
    """The update cannot be done. The text is reported as the reason."""


class UpdateRecord(NamedTuple):
    """The last update of this agent, as stored in ``update.json``."""

    id: str
    state: str
    sha256: str
    #: The agent's program, and the file with the old one.
    program: str = ""
    previous: str = ""
    #: Seconds until the return to the old program.
    seconds: float = 120.0
    reason: str = ""
    is_reported: bool = False


def read_record(state: Path) -> Optional[UpdateRecord]:
    """Return the record of the last update, or None."""
    try:
        return UpdateRecord(**read_map(state / "update.json"))
    except TypeError:
        return None


def store_record(state: Path, record: UpdateRecord) -> None:
    """Store the record. Raises OSError."""
    write_json(state / "update.json", record._asdict())


class Updater:
    """
    Follows the offers in the documents of Stoker's channel.

    ``drain`` waits for the end of active runs before the restart. Their results are on disk then.
    """

    def __init__(self, config: Config, paths: Paths, manager: ServiceManager, drain: Drain, outbox: Outbox) -> None:
        self._config = config
        self._outbox = outbox
        self._paths = paths
        self._manager = manager
        self._drain = drain
        self._program = program_file.find()
        self._thread: Optional[threading.Thread] = None
        self._record = read_record(paths.state)
        if self._is_unconfirmed() and self._is_running(self._record):
            start_guard(paths, self._record, manager.is_present)

    def on_document(self, offer: Mapping[str, Any]) -> None:
        """
        Follow the member ``agent`` of a document, in a thread. The document proves that this program reaches Stoker.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        if self._is_unconfirmed():
            if self._is_running(self._record):
                self._finish(COMPLETE, "")
            else:
                self._finish(FAILED, "interrupted: the agent ended before its program was replaced")
        record = self._record
        if offer and (record is None or offer.get("id") != record.id):
            self._thread = threading.Thread(target=self._work, args=(offer,), name="update", daemon=True)
            self._thread.start()
        elif record is not None and not record.is_reported:
            self._report()

    def _is_unconfirmed(self) -> bool:
        return self._record is not None and self._record.state == RESTARTING

    @staticmethod
    def _is_running(record: Optional[UpdateRecord]) -> bool:
        """Whether this process executes the program of the update."""
        program = program_file.read()
        return record is not None and program is not None and _digest(program) == record.sha256

    def _work(self, offer: Mapping[str, Any]) -> None:
        try:
            self._update(offer)
        except Stopped:
            _log.info("update.stopped: the agent ends before the update")
            return
        except Exception as error:
            reason = str(error)
            if not isinstance(error, (UpdateFailed, OSError, subprocess.SubprocessError)):
                _log.exception("update.failed: the update failed")
                reason = f"{type(error).__name__}: {error}"
            self._record = UpdateRecord(str(offer.get("id")), FAILED, str(offer.get("sha256")))
            self._finish(FAILED, reason)
            self._drain.end()
        self._report()

    def _update(self, offer: Mapping[str, Any]) -> None:
        """Replace the program and execute it. Returns only if this program is the offered one."""
        program = self._check_program()
        self._record = UpdateRecord(str(offer["id"]), FAILED, str(offer["sha256"]))
        if self._is_running(self._record):
            self._finish(COMPLETE, "")
            return
        _log.info("update.started: this agent becomes version %s", offer["version"])
        fresh, previous = program.with_name(program.name + ".new"), program.with_name(program.name + ".old")
        write(fresh, self._download(str(offer["sha256"])), 0o755)
        self._test(fresh, str(offer["id"]))
        id = str(offer["id"])
        self._drain.begin(lambda reason: self._post(id, "IN_PROGRESS", reason))
        record = UpdateRecord(
            id, RESTARTING, str(offer["sha256"]), str(program), str(previous), float(offer["seconds"])
        )
        with self._drain.restarting:
            self._restart(record, fresh)

    def _restart(self, record: UpdateRecord, fresh: Path) -> None:
        """Replace the program by ``fresh`` and execute it. Raises Stopped if the agent is to end instead."""
        self._drain.check()
        before, program, previous = read_record(self._paths.state), Path(record.program), Path(record.previous)
        previous.unlink(missing_ok=True)
        os.link(str(program), str(previous))
        store_record(self._paths.state, record)
        fresh.replace(program)
        start_guard(self._paths, record, self._manager.is_present)
        try:
            self._drain.check()  # the new program would not know of the signal
        except Stopped:
            previous.replace(program)
            store_record(self._paths.state, before or record._replace(state=FAILED, reason="the agent was stopped"))
            raise
        _log.info("update.restarted: the new program starts")
        self._manager.restore_environment()
        os.execv(sys.executable, [sys.executable, str(program), *sys.argv[1:]])  # noqa: S606 — a shell would be another process

    def _check_program(self) -> Path:
        if self._program is None:
            raise UpdateFailed("this agent does not run from a program file, so it cannot replace itself")
        if not os.access(str(self._program.parent), os.W_OK):
            raise UpdateFailed(
                f"this agent runs as user {os.geteuid()} and may not replace {self._program}:"
                " on the machine, run the install line of a new enrollment, or `stoker-agent install`, as root"
            )
        return self._program

    def _download(self, sha256: str) -> bytes:
        """Return the program. Raises UpdateFailed if it does not come, or has another digest."""
        reason, backoff = "", Backoff()
        for _ in range(_TRIES):
            pause = _RETRY_SECONDS
            try:
                answer = call_once(self._config, "GET", _PATH, seconds=60.0, limit=_PROGRAM)
                if answer.status == 200 and _digest(answer.body) == sha256:
                    return answer.body
                reason = "its digest is another one than the offer's" if answer.status == 200 else answer.summary()
            except Unreachable as error:
                reason = str(error)
                pause = max(pause, backoff.next(error.retry_after))
            threading.Event().wait(pause)
        raise UpdateFailed(f"cannot download the program: {reason}")

    def _test(self, fresh: Path, id: str) -> None:
        """Let the new program test itself. Raises UpdateFailed with its last line."""
        command = [sys.executable, str(fresh), "self-test", "--update", id, *_root_words(self._paths)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TEST_SECONDS, check=False)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise UpdateFailed(f"the new program fails its self-test: {lines[-1] if lines else done.returncode}")

    def _finish(self, state: str, reason: str) -> None:
        assert self._record is not None
        self._record = self._record._replace(state=state, reason=reason, is_reported=False)
        write = _log.info if state == COMPLETE else _log.error
        write("update.ended: the update ended with %s%s", state, f": {reason}" if reason else "")
        self._store()

    def _report(self) -> None:
        """Report the state of the last update."""
        record = self._record
        assert record is not None

        def end(_: Optional[str]) -> None:
            self._record = record._replace(is_reported=True)
            self._store()

        self._post(record.id, record.state, record.reason, end)

    def _post(
        self, id: str, status: str, reason: str, on_answer: Callable[[Optional[str]], None] = lambda _: None
    ) -> None:
        self._outbox.post("state of the update", "POST", _REPORT_PATH, _describe(id, status, reason), on_answer)

    def _store(self) -> None:
        try:
            if self._record is not None:
                store_record(self._paths.state, self._record)
        except OSError as error:
            _log.error("update.not_stored: cannot store the state of the update: %s", error)


def report_test(config: Config, id: str) -> None:
    """Report that this program passes its self-test. Raises Unreachable."""
    channel = Channel(config)
    try:
        channel.report("POST", _REPORT_PATH, _describe(id, "IN_PROGRESS", ""))
    finally:
        channel.close()


def _describe(id: str, status: str, reason: str) -> Dict[str, str]:
    """Return the report of the state of an update."""
    program = program_file.read()
    report = {"id": id, "status": status, "reason": reason[:2000]}
    return report if program is None else {**report, "sha256": _digest(program)}


def start_guard(paths: Paths, record: Optional[UpdateRecord], is_managed: bool) -> None:
    """Start the process that restores the old program, from the old program's file."""
    if record is None or not Path(record.previous).exists():
        return
    words = [*(["--managed"] if is_managed else []), *_root_words(paths), "--", *sys.argv[1:]]
    environment: Dict[str, str] = dict(os.environ)
    subprocess.run(
        [sys.executable, record.previous, "update-guard", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        timeout=_TEST_SECONDS,
        check=False,
    )


def _root_words(paths: Paths) -> List[str]:
    return [] if paths == Paths.of(None) else ["--root", str(paths.state.parent)]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
