"""The relay's metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest


class RelayMetrics:
    """Counters, which the relay's parts increase, and gauges, which are read when a client requests ``/metrics``."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(namespace="stoker_relay", registry=self._registry)
        labels = ("method", "route", "status")
        self.requests = Counter(
            "stoker_relay_requests", "Answered requests, by method, route and status.", labels, registry=self._registry
        )
        self.handler_seconds: Histogram | None = None  # all handlers are coroutines
        self.streams = Counter("stoker_relay_streams", "Requests for the stream of changes.", registry=self._registry)

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge. ``read`` returns its value."""
        Gauge(f"stoker_relay_{name}", text, registry=self._registry).set_function(read)

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
