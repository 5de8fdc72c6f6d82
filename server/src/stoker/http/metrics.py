"""
GET /metrics: the metrics of this process or of all workers, and of the site, in Prometheus' text format.

Under one supervisor (``stoker serve --workers``), a request reaches any worker, which reads the metrics of the others
from their Unix sockets in the state directory.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import Metric, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from stoker import VERSION
from stoker.background_thread import BackgroundThread
from stoker.http.access import MONITORING_TOKEN, TOKEN, Access, site_admin
from stoker.http.api import Route
from stoker.http.contracts import operation
from stoker.http.request import RequestContext, Response
from stoker.model.errors import StokerError
from stoker.store import site
from stoker.store.site import SiteFigures

if TYPE_CHECKING:
    from stoker.http.app import App

#: Seconds for which figures of the site are not read again: counting a large fleet takes the database a while.
_FIGURES_SECONDS = 15.0
#: Every status of a server, so that a status without servers is 0 and not absent.
_STATUSES = ("ONLINE", "OFFLINE", "ENROLLING", "NEVER_SEEN", "PENDING_APPROVAL", "LEFT")
#: Seconds for which a request waits for another worker. The metrics of one that does not answer are left out.
_SECONDS = 1.0


class FiguresReader:
    """Reads the figures of the site, once in a while for all clients."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures: SiteFigures | None = None
        self._read_at = 0.0

    def read(self, app: App) -> SiteFigures | None:
        """Return recent figures, or None while the database does not answer. Blocks."""
        if "database" in app.health.problems():
            return None  # a read would wait for a connection in vain
        with self._lock:
            if self._figures is None or time.monotonic() - self._read_at > _FIGURES_SECONDS:
                try:
                    with app.store.read() as tx:
                        self._figures = site.read_figures(tx, app.settings.offline_after)
                except StokerError:
                    return None
                self._read_at = time.monotonic()
            return self._figures


def collect_gauges(app: App) -> Iterator[Metric]:
    """Yield the gauges of this process, from memory."""
    yield InfoMetricFamily(
        "stoker_process",
        "The process that answers: its version and the kind of its database.",
        value={"version": VERSION, "database": app.store.dialect},
    )
    yield _gauge("stoker_held_polls", "Polls of agents that wait for a new document.", len(app.waiters.only))
    yield _gauge("stoker_awaited_topics", "Documents, runs and triggers that requests wait for.", app.waiters.count())
    in_use, maximum = app.store.count_connections()
    yield _gauge("stoker_database_connections_in_use", "Database connections that transactions use now.", in_use)
    yield _gauge(
        "stoker_database_connections_max", "Database connections that transactions may use at a time.", maximum
    )
    yield _gauge(
        "stoker_clock_difference_seconds",
        "Seconds by which the machine's clock is ahead of Stoker's time; negative: behind.",
        app.store.clock.difference(),
    )
    free, total = app.work.count_threads()
    yield _gauge("stoker_job_threads", "Threads for jobs.", total)
    yield _gauge("stoker_job_threads_busy", "Threads that run a job now.", total - free)
    problems = app.health.problems()
    yield _gauge("stoker_healthy", "1 if all checks of /healthz pass, else 0.", not problems)
    yield _gauge("stoker_degraded", "1 while /healthz has warnings, else 0.", bool(app.health.warnings()))
    end = app.certificate.end()
    yield _gauges(
        "stoker_certificate_expiry_timestamp_seconds",
        "When the TLS certificate expires.",
        "path",
        {} if end is None else {str(app.certificate.chain): end.timestamp()},
    )
    yield _gauges(
        "stoker_disk_free_bytes",
        "Free space of the file systems that this process writes to.",
        "path",
        {str(path): free for path, free, _ in app.disk_space.sizes()},
    )
    yield _gauges(
        "stoker_notifier_up",
        "1 while this part of the notifier works, else 0.",
        "part",
        {part: problem is None for part, problem in app.store.notifier_problems().items()},
    )


def collect_site(app: App) -> Iterator[Metric]:
    """Yield the gauges of the site, none while the database does not answer. Blocks while they are read."""
    figures = app.figures.read(app)
    if figures is None:
        return
    agents = {status: figures.servers.get(status, 0) for status in _STATUSES}
    yield _gauges("stoker_agents", "Servers of the site by status.", "status", agents)
    jobs = {"due": figures.jobs.due, "running": figures.jobs.running, "later": figures.jobs.later}
    yield _gauges("stoker_jobs", "Jobs of the site: due ones that wait, running ones, and later ones.", "state", jobs)
    yield _gauge("stoker_job_lag_seconds", "How long the oldest due job has waited.", figures.jobs.lag_seconds)
    yield _gauge("stoker_database_bytes", "Size of the database.", figures.database_bytes)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """Return a gauge with a value for each value of a label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def open_folder(state_dir: Path) -> Path:
    """Return a path to the folder of the sockets in this process and its children, short enough for a socket."""
    folder = state_dir / "workers"
    folder.mkdir(mode=0o700, exist_ok=True)
    return Path(f"/proc/self/fd/{os.open(folder, os.O_DIRECTORY)}")


class WorkerMetrics:
    """Exchanges the metrics of worker ``number`` (from 1) with the other ``workers``."""

    def __init__(self, number: int, workers: int, folder: Path) -> None:
        self.number = number
        self._own = folder / str(number)
        self._others = [str(folder / str(other)) for other in range(1, workers + 1) if other != number]

    def start(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """Start the thread that sends the metrics that ``collect`` returns to other workers."""
        BackgroundThread("stoker-metrics", partial(self._serve, collect)).start()

    def read_others(self) -> list[Metric]:
        """Return the metrics of the other workers. Blocks, for a second for each that does not answer."""
        metrics: list[Metric] = []
        for address in self._others:
            with suppress(OSError, EOFError), Client(address, "AF_UNIX") as connection:
                if connection.poll(_SECONDS):
                    metrics += connection.recv()
        return metrics

    def _serve(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._own.unlink(missing_ok=True)  # of a process that was killed
        with Listener(str(self._own), "AF_UNIX", backlog=16) as listener:
            while True:
                with suppress(OSError), listener.accept() as connection:
                    connection.send(list(collect()))


def merge(metrics: Iterable[Metric]) -> list[Metric]:
    """Return each metric once, with the samples of all of the same name."""
    merged: dict[str, Metric] = {}
    for metric in metrics:
        first = merged.setdefault(metric.name, metric)
        if first is not metric:
            first.samples.extend(metric.samples)
    return list(merged.values())


def collect_process(app: App) -> Iterator[Metric]:
    """
    Yield the metrics of this process, with the label ``process``: the worker's number, else the process's id.

    A worker keeps its number after a restart, so its series continue, and Prometheus sees its counters begin again.
    Leaves out when each counter was created, which doubles the text and repeats the process's start.
    """
    process = str(app.worker.number if app.worker else os.getpid())
    for metric in (*app.metrics.registry.collect(), *collect_gauges(app), *ProcessCollector(registry=None).collect()):
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
    text = await request.in_thread(generate_latest, _Everything(request.app))
    return Response(200, text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


ROUTES = [Route("GET", "/metrics", Access(MONITORING_TOKEN, TOKEN, allow=site_admin), show)]
