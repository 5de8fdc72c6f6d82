"""A machine for install lines: a directory of its own, and a PATH with Python and little else."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

#: What an install line may use beside Python: no curl, no wget, no sudo.
TOOLS = ("sh", "env", "id", "true", "uname")


#: Runs the program of the second argument, and is killed before its change of that number (the first argument) of a
#: file, a process or a connection.
KILLED = """
import os, runpy, signal, sys

events = 0

def count(event, _):
    global events
    events += event in ("os.remove", "os.rmdir", "os.kill", "socket.connect", "os.rename")
    if events == last:
        signal.raise_signal(signal.SIGKILL)

last = int(sys.argv[1])
sys.argv = sys.argv[2:]
sys.addaudithook(count)
runpy.run_path(sys.argv[0], run_name="__main__")
"""

#: Runs the program of the first argument, which waits for the end of the agent for a second instead of 20.
IMPATIENT = """
import runpy, sys

sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0])
from stoker_agent import service

service._STOP_SECONDS = 1.0
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Machine:
    """
    Installations below a root of their own.

    ``shell`` is the shell of the person who pastes the line.
    """

    def __init__(self, folder: Path, shell: str = "sh") -> None:
        self.root = folder / "root"
        self.tools = folder / "bin"
        self.tools.mkdir(parents=True)
        self.tools.joinpath("python3").symlink_to(sys.executable)
        self._shell = str(shutil.which(shell))
        for name in TOOLS:
            self.add_tool(name)

    def add_tool(self, name: str, script: str | None = None) -> None:
        """Install a program: a shell script, or by default this host's own."""
        path = self.tools / name
        path.unlink(missing_ok=True)
        if script is None:
            path.symlink_to(str(shutil.which(name)))
            return
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def paste(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a line in the shell."""
        variables = {"PATH": str(self.tools), "HOME": str(self.root), "STOKER_ROOT": str(self.root), **environment}
        return subprocess.run(
            [self._shell, "-c", command], env=variables, capture_output=True, text=True, timeout=120, check=False
        )

    def install(self, command: str, **environment: str) -> str:
        """Run a line that must succeed, and return its output."""
        pasted = self.paste(command, **environment)
        assert pasted.returncode == 0, pasted.stderr
        return pasted.stdout

    def run_agent(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the installed agent."""
        return self._run(words=words)

    def run_impatient(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command that soon kills an agent that does not end."""
        return self._run("-c", IMPATIENT, words=words)

    def _run(self, *options: str, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        program = str(self.root / "stoker-agent.pyz")
        command = [sys.executable, *options, program, *words, "--root", str(self.root)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    @property
    def config(self) -> dict[str, str]:
        """The enrollment."""
        return json.loads(self.root.joinpath("etc", "agent.json").read_text())

    @property
    def agents(self) -> list[int]:
        """The process ids of agents that run for the root."""
        return [pid for pid, words in _processes() if words[-3:] == ["run", "--root", str(self.root)]]

    def end(self) -> None:
        """Kill all processes that name the root."""
        for pid, words in _processes():
            if any(str(self.root) in word for word in words):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def command_lines_with(text: str) -> list[str]:
    """Return the command lines of all processes of this host that contain ``text``, as `ps` shows them."""
    return [line for _, words in _processes() if text in (line := " ".join(words))]


def _processes() -> list[tuple[int, list[str]]]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                words = entry.joinpath("cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
                found.append((int(entry.name), words))
    return found
