"""How much of a run's output goes into its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Mapping

#: Bytes of a whole report; Heat refuses more than 1 MiB.
REPORT = 950000
#: Bytes of one stream that are read for it.
_STREAM = 400000
_NOTE = "[… the beginning was cut]\n"


def tail_text(path: Path, limit: int = _STREAM) -> str:
    """The last ``limit`` bytes of a file as text; a first line says how much is missing."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            missing = file.seek(max(0, size - limit))
            data = file.read(limit)  # and no more, however fast somebody goes on writing
    except FileNotFoundError:
        return ""
    if not missing:
        return data.decode("utf-8", "replace")
    return f"[… {missing} bytes before this were cut]\n{_from_character(data).decode('utf-8', 'replace')}"


def _from_character(data: bytes) -> bytes:
    """The cut may have fallen into a character: what is left of it goes."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def fitted(values: Mapping[str, Any]) -> Dict[str, Any]:
    """
    Values that fit into one report: stdout and stderr lose their beginnings first.

    Outputs are never cut, as nobody would notice: when they are too large the report is of a failure, without them.
    """
    found = dict(values)
    for name in ("deploy_stdout", "deploy_stderr"):
        over = len(json.dumps(found)) - REPORT
        if over > 0 and isinstance(found.get(name), str):
            found[name] = _cut(found[name], over)
    if len(json.dumps(found)) <= REPORT:
        return found
    reason = f"The outputs are larger than a report may be, {REPORT} bytes"
    kept = {name: values[name] for name in ("deploy_stdout", "deploy_stderr") if isinstance(values.get(name), str)}
    return fitted({**kept, "deploy_status_reason": reason, "deploy_status_code": 1})


def _cut(text: str, over: int) -> str:
    """Shorter by at least ``over`` bytes of JSON, if it can be; a character may take up to twelve of them."""
    room = len(json.dumps(text)) - over - len(json.dumps(_NOTE))
    low, high = 0, len(text)
    while low < high:  # the most characters of the end that fit
        keep = (low + high + 1) // 2
        if len(json.dumps(text[len(text) - keep :])) <= room:
            low = keep
        else:
            high = keep - 1
    return _NOTE + text[len(text) - low :]
