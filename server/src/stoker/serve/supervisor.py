"""
The supervisor of several worker processes on one port.

The supervisor forks the workers, restarts those that die, and stops all of them at SIGTERM or SIGINT. Each worker has a
listening socket of its own on the shared port (SO_REUSEPORT), so the kernel distributes connections evenly. The
supervisor keeps the sockets open: connections that arrive while a worker is restarted wait for it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from stoker.failures import backoff
from stoker.model.errors import StokerError, Unavailable

_log = structlog.get_logger("stoker.serve")

#: Seconds that workers get to stop after a signal.
_STOP_SECONDS = 20.0
#: Seconds after which a worker that dies is restarted at once. One that dies earlier waits, longer each time.
_STABLE_SECONDS = 10.0
_LONGEST_PAUSE = 30.0
#: What a worker sends to the supervisor when it accepts requests. Signals of this kind are queued.
_READY = signal.SIGRTMIN
_STOPPING = (signal.SIGTERM, signal.SIGINT)
#: The signals that the supervisor waits for, and blocks otherwise.
_SIGNALS = (*_STOPPING, signal.SIGCHLD, _READY)
#: Linux's option of prctl: the signal that a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1

#: (number of the worker, its socket, what it calls when it is ready): serves until SIGTERM.
ServeWorker = Callable[[int, socket.socket, Callable[[], None]], None]


@dataclass(slots=True)
class _Worker:
    """One worker process, and its successors."""

    number: int
    listening: socket.socket
    #: 0: the process has ended.
    pid: int = 0
    started: float = 0.0
    #: When to start the process again, if it has ended.
    due: float = 0.0
    #: How often the process ended early, one time after the other.
    failures: int = 0

    def fork(self) -> bool:
        """Start the process. Returns True in the new process."""
        self.started = time.monotonic()
        self.pid = os.fork()
        return self.pid == 0

    def reap(self) -> int | None:
        """Return the exit code of the process if it has ended just now."""
        pid, status = os.waitpid(self.pid, os.WNOHANG) if self.pid else (0, 0)
        if not pid:
            return None
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def has_died(self) -> bool:
        """Return whether the process has ended just now, although it should not, and decide when to restart it."""
        pid, code, now = self.pid, self.reap(), time.monotonic()
        if code is None:
            return False
        self.failures = 0 if now - self.started >= _STABLE_SECONDS else self.failures + 1
        pause = backoff(self.failures - 1, first=0.1, longest=_LONGEST_PAUSE) if self.failures else 0.0
        self.due = now + pause
        _log.error("worker.ended", worker=self.number, pid=pid, exit_code=code, restart_seconds=round(pause, 1))
        return True


class Supervisor:
    """Runs one worker per socket. ``serve`` is called in each worker process."""

    def __init__(self, sockets: Sequence[socket.socket], serve: ServeWorker) -> None:
        self._workers = [_Worker(number, listening) for number, listening in enumerate(sockets, 1)]
        self._serve = serve
        self._pid = os.getpid()

    def run(self, ready: Callable[[], None]) -> None:
        """
        Run the workers until SIGTERM or SIGINT. ``ready`` is called when all of them accept requests.

        Raises Unavailable if a worker dies before that.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        starting = len(self._workers)
        try:
            while True:
                self._start_due(before)
                event = signal.sigtimedwait(_SIGNALS, 1.0)
                sign = None if event is None else event.si_signo
                if sign in _STOPPING:
                    return
                if sign == _READY and starting:
                    starting -= 1
                    if not starting:
                        ready()
                ended = [worker for worker in self._workers if worker.has_died()]
                if ended and starting:
                    raise Unavailable("a worker process ended before it was ready: the log states the reason")
        finally:
            self._stop()
            for sign in _STOPPING:
                signal.signal(sign, signal.SIG_IGN)  # a second one
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start_due(self, mask: set[signal.Signals | int]) -> None:
        for worker in self._workers:
            if not worker.pid and time.monotonic() >= worker.due:
                sys.stdout.flush()
                sys.stderr.flush()
                if worker.fork():
                    self._become(worker, mask)

    def _become(self, worker: _Worker, mask: set[signal.Signals | int]) -> None:
        """Serve as a worker, and end the process."""
        status = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for other in self._workers:
                if other is not worker:
                    other.listening.close()
            if os.getppid() == self._pid:
                self._serve(worker.number, worker.listening, lambda: os.kill(self._pid, _READY))
            status = 0
        except StokerError as error:
            _log.error("worker.failed", error=error.message)
        except BaseException:
            _log.exception("worker.failed")
        finally:
            logging.shutdown()
            os._exit(status)  # the supervisor's own clean-up is not for the worker

    def _stop(self) -> None:
        """Stop all workers, and wait for them."""
        until = time.monotonic() + _STOP_SECONDS
        running = [worker for worker in self._workers if worker.pid]
        for worker in running:
            os.kill(worker.pid, signal.SIGTERM)
        while running := [worker for worker in running if worker.reap() is None]:
            signal.sigtimedwait((signal.SIGCHLD,), 0.1)
            if time.monotonic() > until:
                for worker in running:
                    _log.error("worker.killed", worker=worker.number, pid=worker.pid)
                    os.kill(worker.pid, signal.SIGKILL)
