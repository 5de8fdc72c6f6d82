"""What the agent reports for a run that could not begin, or that did not end by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

from stoker_agent.limits import clip_text

#: Exit codes for runs that did not end by themselves, numbered as in shells.
TIMED_OUT, INTERRUPTED = 124, 137


def failure(reason: str, code: int, folder: Optional[Path] = None) -> Dict[str, Any]:
    """Return the values of a failed run, with the output in ``folder`` or else ``reason`` as its stderr."""
    values: Dict[str, Any] = {"deploy_status_reason": reason, "deploy_status_code": code}
    return {**values, **read_streams(folder)} if folder else {**values, "deploy_stdout": "", "deploy_stderr": reason}


def read_streams(folder: Path) -> Dict[str, Any]:
    """Return the output of the run in ``folder``, as members of a result."""
    return {f"deploy_{name}": clip_text(folder / name) for name in ("stdout", "stderr")}
