"""GET /metrics: the metrics of this process or of all workers, and of the site, in Prometheus' text format."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from stoker.http.access import MONITORING_TOKEN, TOKEN, Access, site_admin
from stoker.http.app import App
from stoker.http.contracts import operation
from stoker.http.gauges import GaugeCollector, collect_site
from stoker.http.request_context import RequestContext, Response, Route
from stoker.http.worker_metrics import merge


def collect_process(app: App) -> Iterator[Metric]:
    """
    Yield the metrics of this process, with the label ``process``: the worker's number, else the process's id.

    A worker keeps its number after a restart, so its series continue, and Prometheus sees its counters begin again.
    Leaves out when each counter was created, which doubles the text and repeats the process's start.
    """
    process = str(app.worker.number if app.worker else os.getpid())
    for collector in (app.metrics.registry, GaugeCollector(app), ProcessCollector(registry=None)):
        for metric in collector.collect():
            metric.samples = [
                sample._replace(labels={**sample.labels, "process": process})
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ]
            yield metric


class _Everything(Collector):
    """Collects the metrics of all processes behind this address, and the figures of the site once."""

    def __init__(self, app: App) -> None:
        self._app = app

    def collect(self) -> Iterator[Metric]:
        others = self._app.worker.read_others() if self._app.worker else []
        yield from merge([*collect_process(self._app), *others])
        yield from collect_site(self._app)


@operation(200, bytes, media_type="text/plain")
async def show(request: RequestContext) -> Response:
    """Return the metrics of the process that answers, of its fellow workers, and of the site."""
    return Response(200, await request.in_thread(_render, request.app), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _render(app: App) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Everything(app))
    return generate_latest(registry)


ROUTES = [Route("GET", "/metrics", Access(MONITORING_TOKEN, TOKEN, allow=site_admin), show)]
