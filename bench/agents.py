"""Stoker's agent at rest, beside os-collect-config."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.cases import Result, Target
from bench.measure import rss_mb, thread_seconds, tree
from stoker_agent.commands.build import build
from support import processes
from support.agents import collect_config
from support.templates import server, template

#: Seconds that both agents poll before the measurement, and seconds of the measurement: several polls of 30 seconds.
_SETTLING, _MEASURED = 20.0, 90.0
_STARTS = 7


def at_rest(target: Target) -> Result:
    """Measure memory, CPU and start-up of an enrolled agent and of os-collect-config, which poll the same Stoker."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as cleanup:
        folder = Path(name)
        program = folder / "stoker-agent.pyz"
        build(program)
        ours = [sys.executable, str(program)]
        theirs = [str(Path(sys.executable).parent / "os-collect-config")]
        root = enroll(target, ours, folder / "root", f"rest-{uuid.uuid4().hex[:8]}")
        pids = {
            "agent": cleanup.enter_context(running([*ours, "run", "--root", str(root)])),
            "occ": cleanup.enter_context(running([*theirs, *_collect_config(target, folder)])),
        }
        time.sleep(_SETTLING)
        before = {side: _cpu_ms(pid) for side, pid in pids.items()}
        time.sleep(_MEASURED * min(1.0, target.scale * 2))
        used = {side: _cpu_ms(pid) - before[side] for side, pid in pids.items()}
        minutes = _MEASURED * min(1.0, target.scale * 2) / 60
        return {
            "zipapp_kb": round(program.stat().st_size / 1024, 1),
            **{f"{side}_rss_mb": _rss_mb(pid) for side, pid in pids.items()},
            **{f"{side}_cpu_ms_per_minute": round(used[side] / minutes, 1) for side in pids},
            "agent_start_s": _start_seconds([*ours, "--version"]),
            "occ_start_s": _start_seconds([*theirs, "--version"]),
        }


def enroll(target: Target, program: Sequence[str], root: Path, name: str) -> Path:
    """Create a server and enroll an agent with its files below ``root``."""
    made = target.api("POST", "/servers", {"name": name})
    url = f"http://{target.api.base.netloc}"
    words = [*program, "enroll", "--url", url, "--root", str(root)]
    subprocess.run(words, input=made["enrollment"]["token"].encode(), check=True, stdout=subprocess.DEVNULL)
    return root


def _collect_config(target: Target, folder: Path) -> list[str]:
    """Create a server for os-collect-config and return the arguments with which it polls the server's metadata."""
    machine = server("rest", software_config_transport="POLL_SERVER_CFN")
    name, id = target.api.create_stack(template({"server": machine}))
    target.api.wait(name, id, "CREATE_COMPLETE")
    metadata = target.api("GET", f"/stacks/{name}/{id}/resources/server/metadata")["metadata"]
    path = collect_config(folder / "os-collect-config.conf", {"cfn": metadata["os-collect-config"]["cfn"]})
    return [
        "--config-file",
        str(path),
        f"--cachedir={folder}/cache",
        f"--backup-cachedir={folder}/backup",
        "--command=true",
    ]


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[int]:
    """Run a program without its output, yield its process id, and end it."""
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with processes.running(list(command), env={**os.environ, "LC_ALL": "C"}, **nowhere) as process:
        yield process.pid


def _rss_mb(pid: int) -> float:
    return round(sum(map(rss_mb, tree([pid]))), 1)


def _cpu_ms(pid: int) -> float:
    return sum(map(thread_seconds, tree([pid]))) * 1000


def _start_seconds(command: Sequence[str]) -> float:
    """Return the median wall time of a start."""
    seconds = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        subprocess.run(list(command), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    return round(statistics.median(seconds), 3)


OURS = {"agent at rest": at_rest}
