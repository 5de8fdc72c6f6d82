"""
The metrics that one process records, in a registry of its own.

Components record what happens (counters, histograms) in the ``Metrics`` of their store. What can be read at any time
(held polls, connections, jobs, agents) is read when a client requests ``/metrics`` (``http.metrics``).
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

#: Bounds of histograms, in seconds: of a commit on a fast disk to a request that waits for a busy database.
_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
#: From the request of a run to its delivery: to an idle agent within milliseconds, to a busy fleet within minutes.
_DELIVERY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
_GROUP = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The counters and histograms of one process. Recording costs about a microsecond and needs no transaction."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter(
            "http_requests", "Answered HTTP requests, by method, route and status.", "method", "route", "status"
        )
        self.handler_seconds: Histogram | None = self._histogram(
            "http_handler_seconds", "Duration of requests whose handlers run on threads, with the wait for one.", "api"
        )
        self.write_seconds = self._histogram("write_seconds", "Duration of write transactions, waits included.")
        self.commit_seconds = self._histogram("commit_seconds", "Duration of COMMIT, which waits for the disk.")
        self.commit_transactions = self._histogram(
            "commit_transactions", "Transactions that one COMMIT stored.", buckets=_GROUP
        )
        notifications = self._counter("notifications", "Changes sent to, and received from, others.", "direction")
        self.notifications_sent = notifications.labels("sent")
        self.notifications_received = notifications.labels("received")
        self.cache_clears = self._counter("cache_clears", "Clears of all caches, because notifications may be lost.")
        self.delivery_seconds = self._histogram(
            "delivery_seconds", "From the request of a run to the first answer that carries it.", buckets=_DELIVERY
        )
        self.signal_seconds = self._histogram(
            "signal_seconds", "From the beginning of a signal's transaction to its commit, waits included."
        )
        self._jobs_ended = self._counter(
            "jobs_ended", "Jobs that ended in this process, by kind and outcome.", "kind", "outcome"
        )
        self._purged = self._counter("retention_rows", "Rows that retention deleted, by kind.", "kind")
        self._retention_ended = Gauge(
            "stoker_retention_last_success_timestamp_seconds",
            "When this process last completed a pass of retention, by kind.",
            ("kind",),
            registry=self.registry,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"stoker_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float] = _FAST) -> Histogram:
        return Histogram(f"stoker_{name}", text, labels, buckets=buckets, registry=self.registry)

    def count_job(self, kind: str, *, has_failed: bool) -> None:
        """Count a job that has ended."""
        self._jobs_ended.labels(kind, "failure" if has_failed else "success").inc()

    def count_purged(self, kind: str, rows: int) -> None:
        """Count rows that retention has deleted."""
        self._purged.labels(kind).inc(rows)

    def end_retention(self, kind: str) -> None:
        """Record that a pass of retention is complete."""
        self._retention_ended.labels(kind).set_to_current_time()
