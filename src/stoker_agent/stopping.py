"""A run that is not wanted any more: what tells it so, and how its processes are ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Set

#: Why it is to stop, as its result begins.
CANCELLED, WITHDRAWN = "Cancelled", "Withdrawn"
#: Between TERM and KILL, where a config's options say nothing else.
GRACE_SECONDS = 5.0
_LONGEST_GRACE = 3600.0
#: Once all was killed there is nothing to wait for but the kernel.
_KILLED_SECONDS = 5.0
TERMINATED, KILLED = 143, 137


class Control:
    """One run's: whether it has ended, and whether it is to end. The first word on either counts."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.why: Optional[str] = None
        self.ended = False
        self._changed = threading.Condition()

    def stop(self, why: str) -> None:
        with self._changed:
            self.why = self.why or why
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait(self, seconds: Optional[float] = None) -> None:
        """Until there is something to do, or these seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended or self.why is not None, seconds)


class Ended(NamedTuple):
    """How the processes of a run were ended."""

    killed: bool
    #: What it took; of what had to be killed, the grace that it got.
    seconds: float

    def values(self, why: str) -> Dict[str, Any]:
        seconds = f"{round(self.seconds, 1):g} s"
        words = f"had to be killed after {seconds}" if self.killed else f"ended by TERM after {seconds}"
        code = KILLED if self.killed else TERMINATED
        return {"deploy_status_reason": f"{why}: {words}", "deploy_status_code": code}


def before(why: str) -> Dict[str, Any]:
    """The result of a run that never began."""
    return {"deploy_status_reason": f"{why} before it began", "deploy_status_code": TERMINATED}


def grace(entry: Mapping[str, Any]) -> float:
    options = entry.get("options")
    said = options.get("cancel_grace") if isinstance(options, dict) else None
    try:
        return GRACE_SECONDS if said is None else min(_LONGEST_GRACE, max(0.0, float(said)))
    except (TypeError, ValueError):
        return GRACE_SECONDS


def is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether it ended by itself, also when nobody has asked for it yet."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # somebody has


def end_session(
    process: subprocess.Popen[bytes], seconds: float, meanwhile: Callable[[], None] = lambda: None
) -> Ended:
    """
    TERM, so many seconds of grace, then KILL to all of its session; returns when nothing of it is left.

    Not its group: `timeout` and shells with job control make others. A daemon has a session of its own, and stays.
    """
    for sign, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, _KILLED_SECONDS)):
        asked = time.monotonic()
        told: Set[int] = set()
        pause = 0.01
        while True:
            process.poll()
            left = [pid for pid in processes() if _lives_in(process.pid, pid)]
            if not left:
                return Ended(True, seconds) if sign == signal.SIGKILL else Ended(False, _since(asked))
            for pid in left:  # also those that came meanwhile
                if pid not in told:
                    told.add(pid)
                    with contextlib.suppress(OSError):
                        os.kill(pid, sign)
            if _since(asked) >= patience:
                break
            meanwhile()
            time.sleep(max(0.0, min(pause, patience - _since(asked))))
            pause = min(0.1, pause * 1.5)
    return Ended(True, seconds)


def _since(moment: float) -> float:
    return time.monotonic() - moment


def _lives_in(session: int, pid: int) -> bool:
    """Ended processes that nobody has asked for do not count."""
    try:
        state, _, _, found, *_ = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return False
    return int(found) == session and state not in (b"Z", b"X")


def processes() -> List[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
