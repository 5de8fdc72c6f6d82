"""
Where the agent's files are, and what it knows of its server.

``<root>/etc/agent.json`` (mode 0600) is ``{"url": …, "server_id": …, "key": …, "ca_file": …?}``. Whoever starts
agents itself, as the local provider does, writes that file and runs ``stoker-agent run --root ROOT``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

from stoker_agent.files import write


class Unusable(Exception):
    """The agent cannot start; the text says why and what to do."""


class Paths(NamedTuple):
    """Without a root of its own the agent uses the system's places."""

    config: Path
    state: Path
    hooks: Path
    logs: Path

    @classmethod
    def of(cls, root: Optional[str]) -> Paths:
        if root is None:
            return cls(
                Path("/etc/stoker-agent/agent.json"),
                Path("/var/lib/stoker-agent"),
                Path("/etc/stoker-agent/hooks"),
                Path("/var/log/stoker-agent"),
            )
        top = Path(root).absolute()
        return cls(top / "etc" / "agent.json", top / "state", top / "hooks", top / "logs")

    @property
    def sources(self) -> Path:
        """Which sources there are, and what they need."""
        return self.config.with_name("sources.json")

    def make(self) -> None:
        for folder in (self.config.parent, self.state, self.hooks, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class Config(NamedTuple):
    url: str
    server_id: str
    key: str
    ca_file: Optional[str] = None


def read(path: Path) -> Config:
    """Raises Unusable."""
    try:
        said = json.loads(path.read_text())
        return Config(said["url"], said["server_id"], said["key"], said.get("ca_file"))
    except FileNotFoundError:
        raise Unusable(f"{path} is not there: run `stoker-agent enroll --url URL --token TOKEN` first") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unusable(f"cannot read {path}: {type(error).__name__}: {error}") from None


def keep(path: Path, config: Config) -> None:
    said: Dict[str, Any] = {name: value for name, value in config._asdict().items() if value is not None}
    write(path, json.dumps(said, indent=1).encode())


def instance(state: Path) -> str:
    """A name this agent chose for itself, kept before it is first used."""
    path = state / "instance"
    if not path.exists():
        write(path, os.urandom(16).hex().encode())
    return path.read_text()
