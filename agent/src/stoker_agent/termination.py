"""Ends runs: the request to stop, and the termination of the run's processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Set, Tuple

from stoker_agent.programs import option, parse_seconds

#: Reasons for a stop. The result's reason begins with them.
CANCELLED, WITHDRAWN = "Cancelled", "Withdrawn"
#: A file in the run's directory: an agent began to stop the run, for the reason in the file. If this agent ends, the
#: next agent completes the stop.
STOPPING = "stopping"
#: Seconds between SIGTERM and SIGKILL, unless the config's options set ``cancel_grace``.
GRACE_SECONDS = 5.0
_LONGEST_GRACE = 3600.0
#: After SIGKILL, only the kernel delays the end of a process.
_KILLED_SECONDS = 5.0
TERMINATED, KILLED = 143, 137


class Control:
    """Communicates the end of a run, and the request to stop it. The first request sets the reason."""

    def __init__(self) -> None:
        self.why: Optional[str] = None
        self.ended = False
        #: Set by the first of both.
        self._changed = threading.Event()

    def stop(self, why: str) -> None:
        """Request a stop for the reason ``why``, if no earlier request exists."""
        self.why = self.why or why
        self._changed.set()

    def end(self) -> None:
        """Record that the process has ended."""
        self.ended = True
        self._changed.set()

    def wait(self, seconds: Optional[float] = None) -> None:
        """Wait until the run has ended, must stop, or ``seconds`` have passed."""
        self._changed.wait(seconds)


def was_stopping(folder: Path) -> Optional[str]:
    """Return the reason for which an agent began to stop the run in ``folder``, or None if it did not."""
    try:
        return folder.joinpath(STOPPING).read_text() or None
    except OSError:
        return None


def grace(entry: Mapping[str, Any]) -> float:
    """Return the seconds between SIGTERM and SIGKILL: the option ``cancel_grace``, at most an hour."""
    return min(_LONGEST_GRACE, parse_seconds(option(entry, "cancel_grace"), GRACE_SECONDS))


def is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended, even if it was not reaped yet."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # another thread has reaped it


def end_session(
    process: subprocess.Popen[bytes], seconds: float, meanwhile: Callable[[], None] = lambda: None
) -> Optional[Tuple[int, str]]:
    """
    Send SIGTERM to all processes of the session, then SIGKILL after ``seconds``. Return when none remains.

    Returns the exit code to report, and how the processes ended; None, without a signal to any of them, if ``process``
    has ended by itself. ``meanwhile`` is called repeatedly. The process group would not suffice: `timeout` and shells
    with job control create their own groups. A daemon has its own session and survives.
    """
    if is_over(process):
        return None
    for sign, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, _KILLED_SECONDS)):
        asked = time.monotonic()
        signalled: Set[int] = set()
        pause = 0.01
        while True:
            process.poll()
            left = [pid for pid in processes() if _lives_in(process.pid, pid)]
            if not left and sign == signal.SIGTERM:
                return TERMINATED, f"ended by TERM after {round(_since(asked), 1):g} s"
            if not left:
                break
            for pid in left:  # includes processes that started since the previous pass
                if pid not in signalled:
                    signalled.add(pid)
                    with contextlib.suppress(OSError):
                        os.kill(pid, sign)
            if _since(asked) >= patience:
                break
            meanwhile()
            time.sleep(max(0.0, min(pause, patience - _since(asked))))
            pause = min(0.1, pause * 1.5)
    return KILLED, f"had to be killed after {round(seconds, 1):g} s"


def _since(moment: float) -> float:
    return time.monotonic() - moment


def _lives_in(session: int, pid: int) -> bool:
    """Whether the process belongs to the session. Zombies do not count."""
    try:
        state, _, _, group, *_ = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return False
    return int(group) == session and state not in (b"Z", b"X")


def processes() -> List[int]:
    """Return the ids of all processes."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
