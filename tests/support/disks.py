"""Disks that take their time, and small ones that a test fills."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support import waiting
from support.databases import missing

#: The numbers of fsync and fdatasync on a machine.
_NUMBERS = {"x86_64": ("74", "75"), "aarch64": ("82", "83")}
_TRACER = re.compile(r"^TracerPid:\t(\d+)$", re.MULTILINE)


@contextmanager
def slow_disk(pids: Sequence[int], seconds: float) -> Iterator[None]:
    """
    Delay each fsync of these processes, and of the processes that they start meanwhile, by ``seconds``.

    strace holds each of them before the kernel begins it. The block begins when all processes are delayed. Without
    strace, or the right to use it, skips the test; under CI, fails.
    """
    program = shutil.which("strace")
    if program is None:
        missing("strace is not installed; .ci/run names its package")
    calls = "fsync,fdatasync"
    what = ["-e", f"trace={calls}", "-e", f"inject={calls}:delay_enter={seconds * 1_000_000:.0f}"]
    command = [program, "-f", "-q", "-o", "/dev/null", *what, "-p", ",".join(map(str, pids))]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        waiting.until(lambda: strace.poll() is not None or all(_is_traced(pid) for pid in pids))
        if strace.poll() is not None:
            assert strace.stderr is not None
            missing(f"strace does not work: {strace.stderr.read()}")
        yield
    finally:
        if strace.poll() is None:
            strace.send_signal(signal.SIGTERM)  # lets all processes continue
        strace.communicate(timeout=60)


def _is_traced(pid: int) -> bool:
    """Return whether all threads of the process are traced, or the process has ended."""
    try:
        threads = [entry.joinpath("status").read_text() for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return not Path(f"/proc/{pid}").exists()
    return all(found[1] != "0" for found in map(_TRACER.search, threads) if found is not None)


def is_synchronizing(pids: Sequence[int]) -> bool:
    """Return whether an fsync of one of the processes waits."""
    calls = (call for pid in pids for call in Path(f"/proc/{pid}/task").glob("*/syscall"))
    return any(call.read_text().split()[0] in _NUMBERS[platform.machine()] for call in calls)


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[None]:
    """Mount a small file system in memory at ``folder``. Without root, skips the test; under CI, fails."""
    if os.geteuid() != 0:
        missing("only root can mount a file system")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Leave no space on the disk of ``folder``."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 65536) == 65536:
            pass
    try:
        yield
    finally:
        filler.unlink(missing_ok=True)
