"""The processes of tests: their ends if a fixture fails, and forks instead of starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import support.processes
import support.server
from support import forked
from support.ports import free_port
from support.server import STOKER, served
from support.waiting import until

pytestmark = pytest.mark.slow


def living(marker: Path) -> list[int]:
    """Processes that have this path in their arguments."""
    return [
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and str(marker).encode() in _arguments(process)
    ]


def _arguments(process: Path) -> bytes:
    try:
        return process.joinpath("cmdline").read_bytes()
    except OSError:
        return b""


def test_a_server_that_does_not_start_in_time_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(support.server, "_START_SECONDS", 0)
    with pytest.raises(AssertionError, match="did not come up"), served(tmp_path):
        pass
    assert living(tmp_path) == []


@pytest.mark.parametrize("words", [["--version"], ["stack", "list"], ["no-such-command"]])
def test_a_forked_program_behaves_as_a_started_one(tmp_path, words):
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    started = subprocess.run([*STOKER, *words], env=environment, capture_output=True, text=True, check=False)
    forked_one = forked.run(words, environment, 60)
    assert (forked_one.returncode, forked_one.stdout, forked_one.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


_TESTER = """
import os, signal, sys
from support.forked import Forked
with open(os.devnull, "wb") as nothing:
    process = Forked(["serve", "--port", sys.argv[2], "--state-dir", sys.argv[1]], dict(os.environ), nothing, nothing)
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_forked_processes_do_not_outlive_a_killed_test_run(tmp_path):
    command = [sys.executable, "-c", _TESTER, str(tmp_path), str(free_port())]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    forked_id = int(done.stdout)
    until(lambda: not Path(f"/proc/{forked_id}").exists())
