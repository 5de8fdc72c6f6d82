"""Facts of the site: JSON files and executables in the directory ``facts.d``."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any, Dict, Optional, Set

from stoker_agent.program_output import read_output

_log = logging.getLogger("stoker-agent")
_SECONDS = 10.0
#: Limits: files in the directory, and bytes of one file or of one program's output.
_MOST, _LONGEST = 64, 16 * 1024
#: Files with errors in this process, so that each error is logged once.
_failed: Set[str] = set()


def read_site_facts(folder: Path) -> Dict[str, Any]:
    """
    Return the facts in ``folder`` by file name without its ending.

    An executable prints its facts, another file contains them: as JSON, or as lines NAME=VALUE. A file with an error is
    logged and left out.
    """
    facts: Dict[str, Any] = {}
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError:
        return facts
    for path in paths[:_MOST]:
        try:
            facts[path.stem] = _parse(_content(path))
            _failed.discard(path.name)
        except (OSError, ValueError, RecursionError) as error:
            if path.name not in _failed:
                _failed.add(path.name)
                _log.warning("facts.invalid: %s is left out: %s: %s", path, type(error).__name__, error)
    return facts


def _content(path: Path) -> str:
    if os.access(str(path), os.X_OK):
        return read_output([str(path)], _SECONDS, _LONGEST).decode("utf-8")
    with path.open("rb") as file:
        data = file.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise OSError(f"more than {_LONGEST} bytes")
    return data.decode("utf-8")


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        values = _lines(text)
        if values is None:
            raise ValueError("neither JSON nor lines NAME=VALUE") from None
        return values


def _lines(text: str) -> Optional[Dict[str, str]]:
    values: Dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            return None
        values[name.strip()] = value.strip()
    return values or None
