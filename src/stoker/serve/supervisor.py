"""
The supervisor of several worker processes on one port.

The supervisor forks the workers, restarts those that die, forwards SIGTERM and SIGINT to them, and writes their log.
Each worker has a listening socket of its own on the shared port (SO_REUSEPORT), so the kernel distributes connections
evenly. The supervisor keeps the sockets open: connections that arrive while a worker is restarted wait for it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType

import structlog

from stoker import log
from stoker.backoff import backoff
from stoker.model.errors import StokerError, Unavailable

_log = structlog.get_logger("stoker.serve")

#: Seconds that workers get to stop after a signal.
_STOP_SECONDS = 20.0
#: Seconds after which a worker that dies is restarted at once. One that dies earlier waits, longer each time.
_STABLE_SECONDS = 10.0
_LONGEST_PAUSE = 30.0
_READY = b"r"

#: (number of the worker, its socket, what it calls when it is ready): serves until SIGTERM.
ServeWorker = Callable[[int, socket.socket, Callable[[], None]], None]


class _Worker:
    """One worker process, and its successors."""

    def __init__(self, number: int, listening: socket.socket) -> None:
        self.number = number
        self.listening = listening
        #: 0: the process has ended.
        self.pid = 0
        #: When to start the process again, if it has ended.
        self.due = 0.0
        self._started = 0.0
        #: How often the process ended early, one time after the other.
        self._failures = 0

    def fork(self) -> bool:
        """Start the process. Returns True in the new process."""
        self._started = time.monotonic()
        self.pid = os.fork()
        return self.pid == 0

    def reap(self) -> int | None:
        """Return the exit code if the process has ended, and decide when to start it again."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.pid = 0
        self._failures = 0 if time.monotonic() - self._started >= _STABLE_SECONDS else self._failures + 1
        pause = backoff(self._failures - 1, first=0.1, longest=_LONGEST_PAUSE) if self._failures else 0.0
        self.due = time.monotonic() + pause
        return os.waitstatus_to_exitcode(status)


class Supervisor:
    """Runs one worker per socket. ``serve`` is called in each worker process."""

    def __init__(self, sockets: Sequence[socket.socket], serve: ServeWorker) -> None:
        self._workers = [_Worker(number, listening) for number, listening in enumerate(sockets, 1)]
        self._serve = serve
        self._stopping: int | None = None
        self._ready = 0
        self._starts, self._ready_writer = os.pipe()
        #: Its writing end is open in the supervisor only: workers read its end when the supervisor dies.
        self._alive_reader, self._alive = os.pipe()
        self._log_reader, self._log_writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._wake_reader, self._wake_writer = socket.socketpair()

    def run(self, ready: Callable[[], None]) -> None:
        """
        Run the workers until SIGTERM or SIGINT. ``ready`` is called when all of them accept requests.

        Raises Unavailable if a worker dies before that.
        """
        for end in (self._wake_reader, self._wake_writer, self._log_reader):
            end.setblocking(False)
        before = signal.set_wakeup_fd(self._wake_writer.fileno())
        for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(sign, self._on_signal)
        is_ready = False
        try:
            for worker in self._workers:
                self._start(worker)
            while self._stopping is None:
                self._wait(1.0)
                has_failed = self._reap()
                if not is_ready and has_failed:
                    raise Unavailable("a worker process ended before it was ready: the log states the reason")
                if not is_ready and self._ready == len(self._workers):
                    is_ready = True
                    ready()
                for worker in self._workers:
                    if not worker.pid and time.monotonic() >= worker.due:
                        self._start(worker)
        finally:
            self._stop()
            signal.set_wakeup_fd(before)

    def _on_signal(self, sign: int, _: FrameType | None) -> None:
        if sign != signal.SIGCHLD:
            self._stopping = sign

    def _start(self, worker: _Worker) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if worker.fork():
            self._become(worker)

    def _become(self, worker: _Worker) -> None:
        """Serve as a worker, and end the process."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(sign, signal.SIG_DFL)
            if self._stopping is not None:  # the signal came before the worker had its own handlers
                return
            for other in self._workers:
                if other is not worker:
                    other.listening.close()
            for end in (self._wake_reader, self._wake_writer, self._log_reader):
                end.close()
            os.close(self._alive)
            os.close(self._starts)
            log.send_to(self._log_writer, worker.number)
            threading.Thread(target=self._end_with_supervisor, name="stoker-supervised", daemon=True).start()
            self._serve(worker.number, worker.listening, self._report_ready)
            status = 0
        except StokerError as error:
            _log.error("worker.failed", error=error.message)
        except BaseException:
            _log.exception("worker.failed")
        finally:
            logging.shutdown()
            os._exit(status)  # the supervisor's own clean-up is not for the worker

    def _report_ready(self) -> None:
        os.write(self._ready_writer, _READY)

    def _end_with_supervisor(self) -> None:
        os.read(self._alive_reader, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _wait(self, seconds: float) -> None:
        """Wait for a signal, a ready worker or log records, and handle the latter two."""
        files = [self._wake_reader.fileno(), self._log_reader.fileno(), self._starts]
        readable, _, _ = select.select(files, [], [], seconds)
        if self._wake_reader.fileno() in readable:
            with contextlib.suppress(BlockingIOError):
                self._wake_reader.recv(4096)
        if self._starts in readable:
            self._ready += len(os.read(self._starts, 1024))
        if self._log_reader.fileno() in readable:
            self._write_log()

    def _write_log(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                log.write_line(self._log_reader.recv(log.LONGEST_RECORD))

    def _reap(self) -> bool:
        """Log the workers that have ended. Return whether there are any."""
        has_ended = False
        for worker in self._workers:
            pid = worker.pid
            code = worker.reap() if pid else None
            if code is not None:
                has_ended = True
                pause = round(max(0.0, worker.due - time.monotonic()), 1)
                _log.error("worker.ended", worker=worker.number, pid=pid, exit_code=code, restart_seconds=pause)
        return has_ended

    def _stop(self) -> None:
        """Stop all workers, and wait for them."""
        until = time.monotonic() + _STOP_SECONDS
        for worker in self._workers:
            if worker.pid:
                os.kill(worker.pid, signal.SIGTERM)
        while running := [worker for worker in self._workers if worker.pid]:
            for worker in running:
                if worker.reap() is None and time.monotonic() > until:
                    _log.error("worker.killed", worker=worker.number, pid=worker.pid)
                    os.kill(worker.pid, signal.SIGKILL)
            self._wait(0.05)
        self._write_log()
