"""Short descriptions of failed runs: the exit code and the last line of standard error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Heat's wording of an exit code in the status reason of a deployment.
_CODE = re.compile(r"(?:, )?deploy_status_code : Deployment exited with non-zero status code: ([^\s,;:]+)")
#: Prefixes that stacks add to the reason of a resource.
_WRAPPING = re.compile(
    r"(?:Resource \w+ failed: |Error: |resources(?:\.[^\s:]+|\[[^\]]*\])+: |Deployment to server failed: )+"
)
#: The name of the server, as Stoker's stacks add it.
_SERVER = re.compile(r"on \S+(?:$|[:;])")
#: The path of a script in an agent's run directory.
_SCRIPT = re.compile(r"/\S*/[0-9a-f]{8}-[0-9a-f-]{27}[^\s/]*/script\b")


def failure_text(reason: str | None, outputs: Mapping[str, Any] | None = None) -> str:
    """
    Return a description such as ``exit 127: script: 7: nosuchcommand: not found``.

    ``reason`` is the status reason of a deployment, its resource or its stack. ``outputs`` are the run's output values,
    if known.
    """
    values = outputs or {}
    match = _CODE.search(reason or "")
    code = match[1] if match else values.get("deploy_status_code")
    rest = " ".join(_WRAPPING.sub("", _CODE.sub("", reason or "")).strip(" ,;").split())
    line = last_line_of(values)
    texts = [text for text in (rest, line if line not in rest else "") if text]
    if code not in (None, "", 0, "0"):
        # Stoker names the server after the code: "exit 3 on web1"
        texts = [f"exit {code} {rest}", *texts[1:]] if _SERVER.match(rest) else [f"exit {code}", *texts]
    return ": ".join(texts) or "no reason given"


def last_line_of(outputs: Mapping[str, Any]) -> str:
    """Return the last line of standard error that is not blank."""
    lines = str(outputs.get("deploy_stderr") or "").splitlines()
    return _SCRIPT.sub("script", next((line.strip() for line in reversed(lines) if line.strip()), ""))
