"""GET /metrics: the metrics of this process, in Prometheus' text format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from stoker.http.access import MetricsToken
from stoker.http.app import App
from stoker.http.contracts import operation
from stoker.http.gauges import GaugeCollector
from stoker.http.request_context import RequestContext, Response, Route


class _OfProcess(Collector):
    """
    Adds the label ``process`` to all samples: it distinguishes the processes behind one address.

    Leaves out when each counter was created, which doubles the text and repeats the process's start.
    """

    def __init__(self, collectors: Iterable[Collector]) -> None:
        self._collectors = collectors
        self._process = str(os.getpid())

    def collect(self) -> Iterator[Metric]:
        for collector in self._collectors:
            for metric in collector.collect():
                metric.samples = [
                    sample._replace(labels={**sample.labels, "process": self._process})
                    for sample in metric.samples
                    if not sample.name.endswith("_created")
                ]
                yield metric


@operation(200, bytes, media_type="text/plain")
async def show(request: RequestContext) -> Response:
    """Return the metrics of the process that answers."""
    return Response(200, await request.in_thread(_render, request.app), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _render(app: App) -> bytes:
    own = ProcessCollector(registry=None)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OfProcess((app.store.metrics.registry, GaugeCollector(app), own)))
    return generate_latest(registry)


ROUTES = [Route("GET", "/metrics", MetricsToken(), show)]
