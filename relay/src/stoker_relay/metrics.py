"""The relay's metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest


class RelayMetrics:
    """Counters, which the relay's parts increase, and gauges, which are read when a client requests ``/metrics``."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(namespace="stoker_relay", registry=self._registry)
        labels = ("method", "route", "status")
        self._requests = Counter(
            "stoker_relay_requests", "Answered requests, by method, route and status.", labels, registry=self._registry
        )
        self.streams = Counter("stoker_relay_streams", "Requests for the stream of changes.", registry=self._registry)

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge. ``read`` returns its value."""
        Gauge(f"stoker_relay_{name}", text, registry=self._registry).set_function(read)

    def count_request(self, method: str, route: str, status: int, _handler_seconds: float | None = None) -> None:
        """Count an answered request. ``route`` is the path of the route's table row; empty: no route."""
        self._requests.labels(method, route, status).inc()

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
