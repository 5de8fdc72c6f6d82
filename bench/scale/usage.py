"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds at a moment: of Stoker's processes, and of the database's."""

    at: float
    stoker: float
    database: float


def measure_usage(stoker: Iterable[int], database: Iterable[int]) -> Usage:
    """Return the CPU time that the processes have used so far."""
    return Usage(time.monotonic(), sum(map(cpu_seconds, stoker)), sum(map(cpu_seconds, database)))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all current threads, which schedstat counts in nanoseconds; 0 if the process ended."""
    total = 0
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int(thread.joinpath("schedstat").read_text().split()[0])
    return total / 1e9


def rss_mb(pid: int) -> float:
    """Return the resident memory in MB, with pages that other processes share."""
    fields = Path(f"/proc/{pid}/status").read_text().split()
    return int(fields[fields.index("VmRSS:") + 1]) / 1024


def shares_of_a_core(before: Usage, after: Usage) -> dict[str, float]:
    """Return the percentage of one core that each side used between two moments."""
    seconds = after.at - before.at
    return {
        "stoker_core_percent": round((after.stoker - before.stoker) / seconds * 100, 2),
        "database_core_percent": round((after.database - before.database) / seconds * 100, 2),
    }


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 300) -> float:
    """Wait until ``condition`` holds, and return the seconds. Raises TimeoutError, which names ``what``."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} seconds")
        time.sleep(0.02)
    return time.monotonic() - begun
