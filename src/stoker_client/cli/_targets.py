"""A server of a trigger in words: what it is doing, and how long it took."""

from collections.abc import Sequence
from datetime import datetime

from stoker_client.shapes import Run, Target, Trigger

_STATES = {
    "HELD": "HELD",
    "WAITING": "WAITING FOR AGENT",
    "DELIVERED": "DELIVERED",
    "RUNNING": "RUNNING",
    "SILENT": "SILENT",
    "CANCELLING": "CANCELLING",
}
_COUNTS = ("complete", "failed", "cancelled", "running", "queued")


def name_of(target: Target) -> str:
    """The server as people call it."""
    return target.get("server_name") or target["server_id"]


def run_of(target: Target) -> Run:
    """Its run, or an empty one before there is any."""
    return target.get("run") or {}


def state_of(target: Target, ago: float = 0.0) -> str:
    """
    One word or a few: of the run while it is under way, of the server's part before and after.

    ``ago``: seconds since this was told; that a silence goes on is no news, and not told again.
    """
    if target["status"] != "IN_PROGRESS":
        return target["status"]
    run = run_of(target)
    state = run.get("state") or ""
    silent = run.get("silent_seconds")
    if state == "SILENT" and silent is not None:
        return f"SILENT for {silent + ago:.0f} s"
    return _STATES.get(state, target["status"])


def said_by(target: Target) -> str:
    """The most telling thing there is to say besides the state, on one line."""
    run = run_of(target)
    under_way = target["status"] == "IN_PROGRESS"
    words = (run.get("message") if under_way else None) or target.get("status_reason") or ""
    return " ".join(words.split())


def seconds_of(run: Run) -> float | None:
    """How long it ran, by the service's clock; None while it runs."""
    start, end = _time(run.get("start_time")), _time(run.get("end_time"))
    return (end - start).total_seconds() if start and end else None


def counts(trigger: Trigger) -> str:
    """``12 of 1000 complete, 3 failed, 50 running``."""
    parts = [f"{trigger.get('complete') or 0} of {trigger.get('total') or 0} complete"]
    parts += [f"{trigger[name]} {name}" for name in _COUNTS[1:] if trigger.get(name)]  # type: ignore[literal-required]
    return ", ".join(parts)


def title(trigger: Trigger) -> str:
    """The trigger as people call it."""
    return trigger.get("name") or trigger.get("action") or trigger["id"]


def order(targets: Sequence[Target], room: int) -> list[Target]:
    """The ``room`` most interesting ones: what runs, with a third kept for failures; then what is done, what waits."""
    ranked: dict[int, list[Target]] = {rank: [] for rank in range(4)}
    for target in targets:
        ranked[_RANKS.get(target["status"], 2)].append(target)
    running, failed, done, queued = (ranked[rank] for rank in range(4))
    kept = failed[-max(room // 3, 1) :] if failed else []  # the last ones: they are the news
    rest = failed[: len(failed) - len(kept)]
    return [*kept, *running, *rest, *reversed(done), *queued][:room]


_RANKS = {"IN_PROGRESS": 0, "FAILED": 1, "COMPLETE": 2, "CANCELLED": 2, "QUEUED": 3}


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
