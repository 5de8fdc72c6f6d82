"""Stoker's own agent as a process that reads its sources from os-collect-config's file, as after a boot."""

from __future__ import annotations

import configparser
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stoker_agent
from support.agent_protocol import SpokenAgent, enroll, trade
from support.server import Served

_SOURCES = Path(stoker_agent.__file__).parents[1]
#: The Python that runs agents, such as the oldest that they support.
AGENT_PYTHON = os.environ.get("STOKER_TEST_AGENT_PYTHON", sys.executable)


@dataclass
class OwnAgent:
    """The agent of one test. Scripts may append to files below ``$WORK``."""

    folder: Path
    words: tuple[str, ...] = ()
    #: Additional environment variables of the agent.
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    #: The enrolled server, to call the agent API with its key.
    _spoken: SpokenAgent | None = None
    #: Arguments of Python that start the agent, such as the path of a program.
    program: tuple[str, ...] = ("-m", "stoker_agent")
    #: Additional lines of the file with variables for runs.
    run_variables: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def spoken(self) -> SpokenAgent:
        """Calls the agent API with the key of this agent, which is enrolled."""
        assert self._spoken is not None
        return self._spoken

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def log(self) -> str:
        return self.folder.joinpath("agent.log").read_text()

    @property
    def kept(self) -> dict[str, Any]:
        """The stored settings of its sources."""
        return json.loads(self.root.joinpath("etc", "sources.json").read_text())

    def lines(self, name: str = "runs") -> list[str]:
        """Return the lines of a file in the work folder, by default the runs that scripts recorded."""
        path = self.work / name
        return path.read_text().splitlines() if path.exists() else []

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("STOKER_", "OS_"))}
        folders = (str(_SOURCES), self.environment.get("PYTHONPATH"))
        return {**kept, **self.environment, "PYTHONPATH": os.pathsep.join(filter(None, folders))}

    def start(
        self,
        *words: str,
        program: tuple[str, ...] | None = None,
        command: str = "run",
        python: str = AGENT_PYTHON,
        **options: Any,
    ) -> None:
        """Start the agent with additional arguments. ``options`` are those of Popen."""
        self.work.mkdir(parents=True, exist_ok=True)
        self.root.joinpath("etc").mkdir(parents=True, exist_ok=True)
        lines = [f"WORK={self.work}", *self.run_variables]
        self.root.joinpath("etc", "environment").write_text("\n".join(lines) + "\n")
        with self.folder.joinpath("agent.log").open("ab") as log:
            self.process = subprocess.Popen(
                [python, *(program or self.program), command, "--root", str(self.root), *self.words, *words],
                env=self.variables,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **options,
            )

    def end(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal to the agent alone, wait for its end, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(sign)
        return self.process.wait(60)

    def enroll(self, stoker: Served, name: str, url: str | None = None) -> None:
        """Enroll as ``name`` and store the key. ``url`` is the agent's URL of Stoker, by default the server's own."""
        server, token = enroll(stoker, name)
        key = trade(stoker, token, name).body["key"]
        self._spoken = SpokenAgent(stoker, server["id"], name, key)
        self.root.joinpath("etc").mkdir(parents=True, exist_ok=True)
        config = {"url": url or stoker.url, "server_id": server["id"], "key": key}
        self.root.joinpath("etc", "agent.json").write_text(json.dumps(config))


def collect_config(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write os-collect-config's file with these sections and return its path."""
    parser = configparser.ConfigParser(interpolation=None)
    parser["DEFAULT"] = {"collectors": ",".join(sections)}
    for name, section in sections.items():
        parser[name] = {key: str(value) for key, value in section.items() if value is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        parser.write(file)
    return path


@contextmanager
def own_agent(folder: Path, sections: Mapping[str, Mapping[str, Any]] | None = None, *words: str) -> Iterator[OwnAgent]:
    """Yield an agent that is not started, and end it with the context."""
    arguments: tuple[str, ...] = ("--polling-interval", "1", *words)
    if sections is not None:
        arguments += ("--os-collect-config", str(collect_config(folder / "os-collect-config.conf", sections)))
    agent = OwnAgent(folder, arguments)
    try:
        yield agent
    finally:
        if agent.process is not None and agent.process.poll() is None:
            agent.end(signal.SIGKILL)


@contextmanager
def enrolled_agent(folder: Path, stoker: Served, name: str, url: str | None = None) -> Iterator[OwnAgent]:
    """Yield the running agent of the new server ``name``. ``url`` is its URL of Stoker."""
    with own_agent(folder) as agent:
        agent.enroll(stoker, name, url)
        agent.start()
        yield agent
