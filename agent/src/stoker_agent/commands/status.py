"""
``stoker-agent status``: what this agent knows, and whether it is well.

Exit codes: 0 well, 3 the agent does not run, 5 Stoker refuses the key, 6 no source answers.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from stoker_agent import __version__
from stoker_agent.config import Paths, Unusable, find
from stoker_agent.runs import Runs
from stoker_agent.service import find_process
from stoker_agent.settings import settings
from stoker_agent.status import read_status

WELL, NOT_RUNNING, REFUSED, NO_CONTACT = 0, 3, 5, 6
#: Seconds without an answer after which the agent has no contact, although no poll has failed: polls last at most 80.
_SILENT_SECONDS = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Print the status and return the exit code."""
    values = gather(paths)
    if options.json:
        print(json.dumps(values, indent=1))
    else:
        for name, text in _lines(values):
            print(f"{name:<13}{text}")
    return int(values["exit_code"])


def gather(paths: Paths) -> Dict[str, Any]:
    """Return all values, JSON data. Raises Unusable if files of the agent cannot be read."""
    config = find(paths)
    recorded = read_status(paths.state) if paths.state.exists() else {}
    runs = Runs(paths.state) if paths.state.exists() else None
    running = find_process(paths) is not None and recorded.get("pid") is not None
    failures: Mapping[str, Mapping[str, Any]] = recorded.get("failures") or {}
    state, exit_code = _judge(running, recorded, failures)
    started = recorded.get("started_at") if running else None
    return {
        "state": state,
        "exit_code": exit_code,
        "server_id": config.server_id if config else None,
        "url": config.url if config else None,
        "version": recorded.get("version") if running else __version__,
        "pid": recorded.get("pid") if running else None,
        "uptime_seconds": round(time.time() - started) if started else None,
        "last_contact": recorded.get("last_contact"),
        "source": recorded.get("source") if running else None,
        "sources": recorded.get("sources") if running else _configured_sources(paths, config is not None),
        "failures": failures,
        "key_refused": any(failure.get("is_refused") for failure in failures.values()),
        "unreported": runs.list_unreported() if runs else [],
        "running": runs.list_interrupted() if runs else [],
        "log": str(paths.log_file),
    }


def _judge(running: bool, recorded: Mapping[str, Any], failures: Mapping[str, Mapping[str, Any]]) -> Tuple[str, int]:
    """Return the state in words, and the exit code."""
    if not running:
        return "not running", NOT_RUNNING
    source, contact = recorded.get("source"), recorded.get("last_contact") or 0.0
    if source is not None and source not in failures and time.time() - contact < _SILENT_SECONDS:
        return "running", WELL
    if any(failure.get("is_refused") for failure in failures.values()):
        return "running, the key is refused", REFUSED
    if not failures and time.time() - float(recorded["started_at"]) < _SILENT_SECONDS:
        return "running, no answer yet", NO_CONTACT
    return "running, without contact", NO_CONTACT


def _configured_sources(paths: Paths, enrolled: bool) -> List[str]:
    try:
        return settings(paths.sources, enrolled=enrolled).usable(enrolled)
    except Unusable:
        return []  # not enrolled yet


def _lines(values: Mapping[str, Any]) -> List[Tuple[str, str]]:
    lines = [
        ("state", str(values["state"])),
        ("server", values["server_id"] or "not enrolled"),
        ("url", values["url"] or "-"),
        ("version", str(values["version"])),
        ("pid", str(values["pid"] or "-")),
        ("uptime", _duration(values["uptime_seconds"])),
        ("last contact", _moment(values["last_contact"])),
        ("sources", ", ".join(f"{name} (in use)" if name == values["source"] else name for name in values["sources"])),
    ]
    for source, failure in values["failures"].items():
        lines.append(("error", f"{source}: {failure['message']} (since {_moment(failure['since'])})"))
    return [
        *lines,
        ("unreported", _count(values["unreported"])),
        ("running", _count(values["running"])),
        ("log", values["log"]),
    ]


def _count(ids: List[str]) -> str:
    return f"{len(ids)}: {', '.join(ids[:3])}{'…' if len(ids) > 3 else ''}" if ids else "0"


def _moment(at: Optional[float]) -> str:
    if not at:
        return "never"
    return (
        f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))} ({_duration(max(0, round(time.time() - at)))} ago)"
    )


def _duration(seconds: Optional[int]) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
