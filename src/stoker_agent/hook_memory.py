"""What the runs of a hook record for later runs of the same deployment."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Mapping

from stoker_agent.files import write

#: The inputs that identify the deployment's resource.
_OWNER = ("deploy_stack_id", "deploy_resource_name")


class DeploymentMemory:
    """
    JSON data that every run of one deployment shares, for example for ``undo``: one file in the hook's directory.

    ``state`` is the directory of the hook. ``inputs`` are those of the run. ``name`` identifies a deployment without a
    stack.
    """

    def __init__(self, state: Path, inputs: Mapping[str, Any], name: str) -> None:
        owner = [str(inputs.get(input_name) or "") for input_name in _OWNER]
        key = hashlib.sha256("\0".join(owner if all(owner) else [name]).encode()).hexdigest()[:32]
        self._path = state / f"{key}.json"

    def load(self) -> Dict[str, Any]:
        """Return the data that an earlier run stored; empty at first."""
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def store(self, content: Mapping[str, Any]) -> None:
        """Replace the data. Raises OSError."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self._path, json.dumps(content).encode())

    def clear(self) -> None:
        """Remove the data, because the deployment has nothing left on this machine. Raises OSError."""
        self._path.unlink(missing_ok=True)
