"""What is read when a client requests ``/metrics``: the state of this process, and the figures of its site."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from stoker.model.errors import StokerError
from stoker.store import site
from stoker.store.site import SiteFigures
from stoker.version import VERSION

if TYPE_CHECKING:
    from stoker.http.app import App

#: Seconds for which figures of the site are not read again: counting a large fleet takes the database a while.
_FIGURES_SECONDS = 15.0
#: Every status of a server, so that a status without servers is 0 and not absent.
_STATUSES = ("ONLINE", "OFFLINE", "ENROLLING", "NEVER_SEEN", "PENDING_APPROVAL", "LEFT")


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


class GaugeCollector(Collector):
    """Collects the gauges of this process, from memory."""

    def __init__(self, app: App) -> None:
        self._app = app

    def collect(self) -> Iterator[Metric]:
        """Yield all gauges."""
        app = self._app
        yield InfoMetricFamily(
            "stoker_process",
            "The process that answers: its version and the kind of its database.",
            value={"version": VERSION, "database": app.store.dialect},
        )
        yield _gauge("stoker_held_polls", "Polls of agents that wait for a new document.", len(app.pending_polls))
        yield _gauge(
            "stoker_awaited_topics", "Documents, runs and triggers that requests wait for.", app.waiters.count()
        )
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
        certificate = GaugeMetricFamily(
            "stoker_certificate_expiry_timestamp_seconds", "When the TLS certificate expires.", labels=["path"]
        )
        if (end := app.certificate.end()) is not None:
            certificate.add_metric([str(app.certificate.chain)], end.timestamp())
        yield certificate
        disks = GaugeMetricFamily(
            "stoker_disk_free_bytes", "Free space of the file systems that this process writes to.", labels=["path"]
        )
        for path, free in app.disk_space.free():
            disks.add_metric([str(path)], free)
        yield disks
        notifier = GaugeMetricFamily(
            "stoker_notifier_up", "1 while this part of the notifier works, else 0.", labels=["part"]
        )
        for part, problem in app.store.notifier_problems().items():
            notifier.add_metric([part], problem is None)
        yield notifier


def collect_site(app: App) -> Iterator[Metric]:
    """Yield the gauges of the site, none while the database does not answer. Blocks while they are read."""
    figures = app.figures.read(app)
    if figures is None:
        return
    agents = GaugeMetricFamily("stoker_agents", "Servers of the site by status.", labels=["status"])
    for status in _STATUSES:
        agents.add_metric([status], figures.servers.get(status, 0))
    yield agents
    jobs = GaugeMetricFamily(
        "stoker_jobs", "Jobs of the site: due ones that wait, running ones, and later ones.", labels=["state"]
    )
    for state, count in (("due", figures.jobs.due), ("running", figures.jobs.running), ("later", figures.jobs.later)):
        jobs.add_metric([state], count)
    yield jobs
    yield _gauge("stoker_job_lag_seconds", "How long the oldest due job has waited.", figures.jobs.lag_seconds)
    yield _gauge("stoker_database_bytes", "Size of the database.", figures.database_bytes)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))
