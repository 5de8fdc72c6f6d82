"""
The agent's directories, and its enrollment.

``<root>/etc/agent.json`` (mode 0600) holds ``{"url": …, "server_id": …, "key": …, "ca_file": …?, "name": …?}``. A
program that starts agents itself, such as the local provider, writes this file and runs ``stoker-agent run --root
ROOT``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Optional, TypeVar

from stoker_agent.files import write, write_json

_T = TypeVar("_T")


class Unusable(Exception):
    """The agent cannot start. The text states the reason and the remedy."""


class Paths(NamedTuple):
    """The agent's files and directories: below one root, or in the system's directories."""

    config: Path
    state: Path
    hooks: Path
    logs: Path

    @classmethod
    def of(cls, root: Optional[str]) -> Paths:
        """Return the paths below ``root``, or the system's paths if ``root`` is None."""
        if root is None:
            return cls(
                Path("/etc/stoker-agent/agent.json"),
                Path("/var/lib/stoker-agent"),
                Path("/etc/stoker-agent/hooks"),
                Path("/var/log/stoker-agent"),
            )
        top = Path(root).absolute()
        return cls(top / "etc" / "agent.json", top / "state", top / "hooks", top / "logs")

    @classmethod
    def of_state(cls, state: Path) -> Paths:
        """Return the paths of the agent whose directory of the state this is."""
        system = cls.of(None)
        return system if state == system.state else cls.of(str(state.parent))

    @property
    def sources(self) -> Path:
        """The file with the settings of the sources."""
        return self.config.with_name("sources.json")

    @property
    def variables(self) -> Path:
        """The file with variables that the machine's administrator adds to the environment of every run."""
        return self.config.with_name("environment")

    @property
    def document_key(self) -> Path:
        """The file with the key that verifies published documents on a server that is not enrolled."""
        return self.config.with_name("document.key")

    @property
    def hook_digests(self) -> Path:
        """The file that pins the delivered hooks of this machine."""
        return self.config.with_name("hook-digests")

    @property
    def delivered_hooks(self) -> Path:
        """The directory of hooks that the agent has fetched from Stoker."""
        return self.state / "delivered-hooks"

    @property
    def log_file(self) -> Path:
        """The agent's log."""
        return self.logs / "agent.log"

    @property
    def site_facts(self) -> Path:
        """The directory with facts of the site."""
        return self.config.with_name("facts.d")

    def make(self) -> None:
        """Create all directories with mode 0700."""
        for folder in (self.config.parent, self.state, self.hooks, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class Config(NamedTuple):
    """The enrollment: Stoker's URL, this server's id and key, and the CA file that verifies the URL."""

    url: str
    server_id: str
    key: str
    ca_file: Optional[str] = None
    #: The server's name when it was enrolled, for messages.
    name: Optional[str] = None
    #: The HTTP proxy's URL; "" for none, None for the environment's. Hosts that need no proxy, separated by commas.
    proxy: Optional[str] = None
    no_proxy: Optional[str] = None
    #: Whether the server was approved when it was enrolled; not stored.
    approved: bool = True


def load(path: Path, parse: Callable[[Dict[str, Any]], _T]) -> Optional[_T]:
    """Return what ``parse`` makes of a JSON file, None if there is none. Raises Unusable if the file is invalid."""
    try:
        return parse(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"cannot read {path}: {type(error).__name__}: {error}") from None


def read(path: Path) -> Config:
    """Read the enrollment. Raises Unusable if the file is missing or invalid."""
    config = load(path, _parse)
    if config is None:
        raise Unusable(f"{path} is not there: run `stoker-agent enroll --url URL` first")
    return config


def _parse(data: Any) -> Config:
    more: Dict[str, Any] = {name: data.get(name) for name in ("ca_file", "name", "proxy", "no_proxy")}
    return Config(data["url"], data["server_id"], data["key"], **more)


def find(paths: Paths) -> Optional[Config]:
    """Return the enrollment, or None if this server is not enrolled. Raises Unusable if the file is invalid."""
    return load(paths.config, _parse)


def keep(path: Path, config: Config) -> None:
    """Write the enrollment to ``path``."""
    data: Dict[str, Any] = {
        name: value for name, value in config._asdict().items() if value is not None and name != "approved"
    }
    write_json(path, data, indent=1)


def credential(paths: Paths, config: Optional[Config], file: Optional[Path]) -> Optional[str]:
    """
    Return the key that verifies published documents, or None if the agent has no key.

    An enrolled agent uses its server key. Otherwise the agent reads ``file``, which holds ``<server id>.<secret>``, and
    stores a copy for later starts without ``file``. Raises Unusable if the file is missing or invalid.
    """
    if config is not None:
        return config.key
    source = paths.document_key if file is None else file
    try:
        text = source.read_text().strip()
    except FileNotFoundError:
        if file is None:
            return None
        raise Unusable(f"the file of --document-key is not there: {file}") from None
    except (OSError, ValueError) as error:
        raise Unusable(f"cannot read {source}: {type(error).__name__}: {error}") from None
    server_id, dot, secret = text.partition(".")
    if not (server_id and dot and secret):
        raise Unusable(f"{source} holds no key: that is <server id>.<secret>, as user data has it")
    if file is not None:
        write(paths.document_key, text.encode())
    return text
