"""The relay's metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

#: Why stored requests were deleted without being accepted.
_LOSSES = ("refused", "failed", "expired")


class Metrics:
    """Counters, which the relay's parts increase, and gauges, which are read when a client requests ``/metrics``."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(namespace="stoker_relay", registry=self._registry)
        self._requests = self._counter("requests", "Answered requests, by kind and status.", "kind", "status")
        self._lost = self._counter(
            "spool_dropped", "Stored requests that Stoker did not accept, and that the relay deleted.", "reason"
        )
        for reason in _LOSSES:
            self._lost.labels(reason)
        self.spooled = self._counter("spool_stored", "Requests that were stored.")
        self.delivered = self._counter("spool_delivered", "Stored requests that Stoker accepted.")
        self.refused_full = self._counter("spool_full", "Requests that were refused because the spool was full.")
        self.shared_polls = self._counter("shared_polls", "Requests for the documents of many agents.")
        self.full_polls = self._counter("full_polls", "Those of them that named all agents of their batch.")

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge. ``read`` returns its value."""
        Gauge(f"stoker_relay_{name}", text, registry=self._registry).set_function(read)

    def count_request(self, kind: str, status: int) -> None:
        """Count an answered request."""
        self._requests.labels(kind, status).inc()

    def count_drop(self, reason: str, count: int = 1) -> None:
        """Count stored requests that were deleted: ``refused`` or ``failed`` by Stoker, or ``expired``."""
        self._lost.labels(reason).inc(count)

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"stoker_relay_{name}", text, labels, registry=self._registry)
