"""Descriptions of runs and of the targets of triggers: state, changes, summary, outputs and duration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from stoker_client.cli._output import inline
from stoker_client.shapes import Run, RunChange, Target, Trigger
from stoker_client.terminal import show_line, split_lines
from stoker_client.triggers import TargetLabels

#: Indentation of a difference below its item.
_INDENT = "    "


def summarize_changes(run: Run) -> str:
    """Return ``changed 3 items``, ``nothing changed``, or "" if the hook does not report it."""
    if run.get("changed") is None:
        return ""
    verb = "would change" if run.get("mode") == "preview" else "changed"
    if not run.get("changed"):
        return f"nothing {verb}"
    count = sum(change.get("outcome") == "changed" for change in run.get("changes") or ())
    return f"{verb} {count} item{'' if count == 1 else 's'}" if count else verb


def describe_changes(changes: Sequence[RunChange], *, indentation: str = "") -> str:
    """Return each item with its outcome, and its difference on indented lines."""
    return "\n".join(indentation + line for change in changes for line in _lines(change))


def _lines(change: RunChange) -> Iterator[str]:
    outcome, item = show_line(change.get("outcome") or "changed"), show_line(change.get("item") or "")
    diff = split_lines((change.get("diff") or "").rstrip("\n"))
    if len(diff) == 1 and diff[0]:
        yield f"{outcome}: {item}: {diff[0].strip()}"
        return
    yield f"{outcome}: {item}"
    yield from (f"{_INDENT}{line}" for line in diff if len(diff) > 1)


#: The columns of ``list_outputs``.
OUTPUT_COLUMNS = ("server", "output", "value")

_STATES = {
    "PENDING_WINDOW": "WAITING FOR WINDOW",
    "QUEUED": "WAITING FOR AGENT",
    "DELIVERED": "DELIVERED",
    "RUNNING": "RUNNING",
    "UNRESPONSIVE": "UNRESPONSIVE",
    "CANCELLING": "CANCELLING",
}
#: The status reason of a run that succeeded without a reason of its own.
_ORDINARY = "Outputs received"
_COUNTS = ("complete", "failed", "cancelled", "running", "queued")


def run_of(target: Target) -> Run:
    """Return the run, or an empty mapping before there is one."""
    return target.get("run") or {}


def state_of(target: Target, ago: float = 0.0) -> str:
    """
    Return the state in a few words: that of the run while it is active, else that of the target.

    ``ago`` is the age of the information in seconds. It extends a silence of the agent, which no event reports.
    """
    if target["status"] != "IN_PROGRESS":
        return target["status"]
    run = run_of(target)
    state = run.get("state") or ""
    silent = run.get("unresponsive_seconds")
    if state == "UNRESPONSIVE" and silent is not None:
        return f"UNRESPONSIVE for {silent + ago:.0f} s"
    return _STATES.get(state, target["status"])


def outputs_of(target: Target) -> dict[str, Any]:
    """Return the output values of the run, without the output and the exit code of a script."""
    values = run_of(target).get("output_values") or {}
    return {name: value for name, value in values.items() if not name.startswith("deploy_")}


def list_outputs(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """Return a row for each output of each target."""
    labels = TargetLabels(targets)
    return [
        {
            "server": labels.of(target),
            "output": name,
            "value": value,
            "server_id": target["server_id"],
            "deployment_id": target.get("deployment_id"),
        }
        for target in targets
        for name, value in outputs_of(target).items()
    ]


def summary_of(target: Target) -> str:
    """Return the most important information besides the state, on one line."""
    run = run_of(target)
    under_way = target["status"] == "IN_PROGRESS"
    words = (run.get("message") if under_way else None) or target.get("status_reason") or ""
    if target["status"] == "COMPLETE" and (summary := summarize_changes(run)):
        words = summary if words in ("", _ORDINARY) else f"{summary}: {words}"
    if target["status"] == "COMPLETE" and (outputs := outputs_of(target)):
        values = ", ".join(f"{name}={inline(value).strip()}" for name, value in outputs.items())
        words = values if words in ("", _ORDINARY) else f"{words}, {values}"
    return " ".join(words.split())


def seconds_of(run: Run) -> float | None:
    """Return the duration of the run by the service's clock, or None while it is active."""
    start, end = run.get("start_time"), run.get("end_time")
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() if start and end else None


def counts(trigger: Trigger) -> str:
    """Return counts such as ``12 of 1000 complete, 3 failed, 50 running``."""
    numbers = {name: trigger.get(name) or 0 for name in ("changed", "unchanged")}
    changes = ", ".join(f"{count} {name}" for name, count in numbers.items()) if any(numbers.values()) else ""
    parts = [f"{trigger.get('complete') or 0} of {trigger.get('total') or 0} complete" + (changes and f" ({changes})")]
    parts += [f"{count} {name}" for name in _COUNTS[1:] if (count := trigger.get(name))]
    return ", ".join(parts)


def title(trigger: Trigger) -> str:
    """Return the trigger's name, or its action, or its id."""
    return trigger.get("name") or trigger.get("action") or trigger["id"]


def order(targets: Sequence[Target], room: int) -> list[Target]:
    """Return ``room`` targets: running, failed, ended, then queued ones. Each failure is also printed as it happens."""
    return sorted(targets, key=lambda target: _RANKS.get(target["status"], 2))[:room]


_RANKS = {"IN_PROGRESS": 0, "FAILED": 1, "QUEUED": 3}
