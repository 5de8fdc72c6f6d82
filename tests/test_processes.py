"""The processes of tests: their ends if a fixture fails, their ports, and forks instead of starts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import support.processes
import support.server
from support import forked
from support.ports import free_port
from support.processes import running
from support.server import STOKER, served
from support.service_processes import Peer
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


def test_all_programs_of_a_service_end_when_one_of_them_fails(tmp_path):
    lasting = [sys.executable, "-c", "import time; time.sleep(600)", str(tmp_path)]
    failing = [sys.executable, "-c", "raise SystemExit('broken')", str(tmp_path)]
    url = f"http://127.0.0.1:{free_port()}"
    service = Peer(tmp_path, url, [lasting, failing], url, {})
    with pytest.raises(AssertionError, match="broken"), service.running():
        pass
    assert living(tmp_path) == []


def test_a_process_ends_with_the_block_that_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(support.processes, "_PATIENCE", 0.1)
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", stubborn, str(tmp_path)]
    with pytest.raises(ZeroDivisionError), running(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        print(1 / 0)
    assert process.returncode == -signal.SIGKILL
    assert living(tmp_path) == []


def test_processes_choose_different_ports_and_none_that_is_in_use():
    code = "from support.ports import free_port; print(*(free_port() for _ in range(300)), flush=True); input()"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running(command, env=environment, **pipes) as one, running(command, env=environment, **pipes) as other:
        chosen = [{int(port) for port in process.stdout.readline().split()} for process in (one, other)]
    assert chosen[0].isdisjoint(chosen[1])
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()
        assert server.getsockname()[1] not in {free_port() for _ in range(300)}


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
