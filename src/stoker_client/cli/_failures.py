"""Failures of an operation on a stack: one line for each failed resource."""

from __future__ import annotations

import re

from stoker_client.failure_text import failure_text
from stoker_client.shapes import Event
from stoker_client.stacks import is_of_stack
from stoker_client.watch import Snapshot

#: The path to the failed resource in a reason, such as ``resources.inner.resources.db``.
_PATH = re.compile(r"\w+: resources\.(\S+): ")
#: Heat's words for a run that has failed.
_RUN = "Deployment to server failed"


def failure_lines(snapshot: Snapshot) -> list[str]:
    """Return lines such as ``inner/db: exit 3 on web1: no space left``, from the events of the operation."""
    lines = (f"{_path(event)}: {failure_text(event.get('resource_status_reason'))}" for event in _failed(snapshot))
    return list(dict.fromkeys(lines))


def logs_hint(snapshot: Snapshot) -> str:
    """Return a hint at the output of a failed run that still is the newest run of its deployment, or ""."""
    if snapshot.status.startswith("ROLLBACK_"):
        return ""
    runs = [event for event in _failed(snapshot) if _RUN in (event.get("resource_status_reason") or "")]
    return f"see `stoker deployment logs {snapshot.name}/{_path(runs[0])}`" if runs else ""


def _failed(snapshot: Snapshot) -> list[Event]:
    return [
        event
        for event in snapshot.events
        if event["resource_status"].endswith("_FAILED") and not is_of_stack(event, snapshot.ref)
    ]


def _path(event: Event) -> str:
    match = _PATH.match(event.get("resource_status_reason") or "")
    return match[1].replace(".resources.", "/") if match else event["resource_name"]
