"""
A command on real agents whose output is shown: `stoker run` beside `salt` (`python -m bench --salt`).

Needs a virtual environment with Salt, whose folder STOKER_BENCH_SALT names: `pip install salt` in it is all.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.agents import enroll, running
from bench.cases import Result, Target
from bench.measure import cpu_seconds, pss_mb, tree, wait_until
from stoker_agent.commands.build import build

_AGENTS, _ROUNDS = 20, 7


def salt_is_missing() -> str | None:
    """Return why there is no Salt to measure, or None."""
    program = Path(os.environ.get("STOKER_BENCH_SALT", "/nonexistent"), "bin", "salt")
    return None if program.exists() else "STOKER_BENCH_SALT names no virtual environment with Salt"


def stoker_run(target: Target) -> Result:
    """Run ``echo hi`` on real agents with the command line."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as processes:
        program = Path(name) / "stoker-agent.pyz"
        build(program)
        ours = [sys.executable, str(program)]
        roots = [enroll(target, ours, Path(name) / f"root{i}", f"run{i}") for i in range(_AGENTS)]
        agents = [processes.enter_context(running([*ours, "run", "--root", str(root)])) for root in roots]
        names = [f"run{i}" for i in range(_AGENTS)]
        command = [sys.executable, "-m", "stoker_client.cli.main", "run", *names, "--", "echo hi"]
        return _measure(command, {**os.environ, **target.api.environment}, target.pids, agents)


def salt_run() -> Result:
    """Run ``echo hi`` on as many minions of a new Salt master."""
    programs = Path(os.environ["STOKER_BENCH_SALT"], "bin")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as processes:
        master = _configure(Path(name, "master"), "master", "interface: 127.0.0.1\nauto_accept: true\n")
        started = [processes.enter_context(running([str(programs / "salt-master"), "-c", str(master)]))]
        for i in range(_AGENTS):
            minion = _configure(Path(name, f"minion{i}"), "minion", f"id: run{i}\nmaster: 127.0.0.1\n")
            started.append(processes.enter_context(running([str(programs / "salt-minion"), "-c", str(minion)])))
        command = [str(programs / "salt"), "-c", str(master), "*", "cmd.run", "echo hi"]
        wait_until(lambda: _count_answers([*command[:3], "*", "test.ping", "--out", "txt"]) == _AGENTS)
        return _measure(command, dict(os.environ), started[:1], started[1:])


def _measure(
    command: Sequence[str], environment: dict[str, str], server: Sequence[int], agents: Sequence[int]
) -> Result:
    """Call the command several times. Return the medians of its time, and of the CPU of the server per target."""
    seconds, used, used_by_agents = [], [], []
    for _ in range(_ROUNDS):
        before, before_agents, began = cpu_seconds(server), cpu_seconds(agents, with_ended=True), time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds.append(time.perf_counter() - began)
        assert done.stdout.count("hi") >= _AGENTS, f"{done.stdout}\n{done.stderr}"
        used.append(cpu_seconds(server) - before)
        used_by_agents.append(cpu_seconds(agents, with_ended=True) - before_agents)
    return {
        "wall_s": round(statistics.median(seconds), 3),
        "server_cpu_ms_per_target": round(statistics.median(used) * 1000 / _AGENTS, 2),
        "agent_cpu_ms_per_run": round(statistics.median(used_by_agents) * 1000 / _AGENTS, 1),
        "server_mb": round(pss_mb(server), 1),
        "server_processes": len(tree(server)),
        "agent_mb": round(pss_mb(agents) / _AGENTS, 1),
    }


def _configure(folder: Path, kind: str, text: str) -> Path:
    folder.mkdir()
    folder.joinpath(kind).write_text(f"{text}root_dir: {folder}\nlog_level: error\n")
    return folder


def _count_answers(command: Sequence[str]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.count(": True")
