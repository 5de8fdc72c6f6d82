"""What a swarm counts and measures. Statistics of several processes can be added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

#: Percentiles of a report.
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass
class Statistics:
    """
    Counts and durations in seconds.

    ``counts``: ``polls``, ``documents``, ``runs``, ``runs begun twice`` (a defect), ``results`` and ``error: …``.
    ``seconds``: by name of a duration: ``enroll``, ``connect`` (from the start of the agent, or the loss of its
    connection, until the server answered a poll), ``document`` (a poll that the server need not hold), ``result``
    (from the first attempt to report it until the server acknowledged it).
    """

    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def record(self, name: str, duration: float) -> None:
        """Add a duration."""
        self.seconds.setdefault(name, []).append(duration)

    def add(self, other: Statistics) -> None:
        """Add another process's statistics."""
        self.counts += other.counts
        for name, durations in other.seconds.items():
            self.seconds.setdefault(name, []).extend(durations)

    def report(self) -> dict[str, Any]:
        """Return the counts, and percentiles of the durations in milliseconds."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "milliseconds": {name: _percentiles(durations) for name, durations in sorted(self.seconds.items())},
        }


def _percentiles(durations: list[float]) -> dict[str, float]:
    ordered = sorted(durations)
    last = len(ordered) - 1
    return {name: round(ordered[round(last * share)] * 1000, 1) for name, share in _SHARES.items()}
