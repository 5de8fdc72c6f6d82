"""Measures wall time, and CPU seconds and memory of processes, from /proc."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import list_children

_TICK = os.sysconf("SC_CLK_TCK")


def tree(roots: Iterable[int]) -> set[int]:
    """Return the ids of the processes and all their descendants."""
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += list_children(pid)
    return found


def cpu_seconds(roots: Iterable[int], *, with_ended: bool = False) -> float:
    """Return the user and system time of all current processes. ``with_ended``: and of the ended ones of the roots."""
    total, roots = 0, tuple(roots)
    for pid in tree(roots):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
        if with_ended and pid in roots:
            total += int(fields[13]) + int(fields[14])
    return total / _TICK


def pss_mb(roots: Iterable[int]) -> float:
    """Return the memory in MB; each shared page is divided among its users."""
    total = 0
    for pid in tree(roots):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds at a moment: of Stoker's processes, and of the database's."""

    at: float
    stoker: float
    database: float


def measure_usage(stoker: Iterable[int], database: Iterable[int]) -> Usage:
    """Return the CPU time that the processes have used so far."""
    return Usage(time.monotonic(), *(sum(map(thread_seconds, pids)) for pids in (stoker, database)))


def thread_seconds(pid: int) -> float:
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


def wait_until(
    condition: Callable[[], bool], what: str = "what is waited for", seconds: float = 300, pause: float = 0.02
) -> float:
    """Wait until ``condition`` holds, and return the seconds. Raises TimeoutError, which names ``what``."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} seconds")
        time.sleep(pause)
    return time.monotonic() - begun


def load(do: Callable[[int], Any], count: int, at_once: int, roots: Iterable[int]) -> dict[str, float]:
    """Call ``do`` ``count`` times, with ``at_once`` parallel calls, after a short warm-up."""
    latencies: list[float] = []

    def one(i: int) -> None:
        began = time.perf_counter()
        do(i)
        latencies.append(time.perf_counter() - began)

    for i in range(min(10, count)):
        do(-1 - i)
    cpu, began = cpu_seconds(roots), time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, range(count)))
    wall, used = time.perf_counter() - began, cpu_seconds(roots) - cpu
    return {
        "per_s": round(count / wall, 1),
        "p50_ms": round(statistics.median(latencies) * 1000, 2),
        "p99_ms": round(sorted(latencies)[int(len(latencies) * 0.99)] * 1000, 2),
        "cpu_s_per_1000": round(used * 1000 / count, 3),
    }
