"""The agent's own files, as the server hands them out: the zipapp and the install script."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from stoker.model.errors import Unavailable
from stoker.version import VERSION


class Program:
    """The agent's package is run and read, never imported: the programs share no code."""

    def __init__(self, folder: Path, public_url: str) -> None:
        self._folder = folder
        self._public_url = public_url
        self._lock = threading.Lock()

    def zipapp(self) -> bytes:
        """Built once a version. Raises Unavailable when that fails."""
        target = self._folder / f"stoker-agent-{VERSION}.pyz"
        with self._lock:
            if not target.exists():
                self._build(target)
        return target.read_bytes()

    def install_script(self) -> bytes:
        spec = find_spec("stoker_agent")
        if spec is None or spec.origin is None:
            raise Unavailable("cannot hand out the agent: the package stoker_agent is not installed")
        text = Path(spec.origin).with_name("install.sh").read_text()
        return text.replace("@URL@", self._public_url).encode()

    def _build(self, target: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        built = subprocess.run(
            [sys.executable, "-m", "stoker_agent", "build", str(fresh)], check=False, capture_output=True, text=True
        )
        if built.returncode:
            raise Unavailable(f"cannot build the agent: {built.stderr.strip()[-300:]}")
        fresh.replace(target)
