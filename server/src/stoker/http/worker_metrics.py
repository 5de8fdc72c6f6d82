"""
The metrics of all worker processes under one supervisor (``stoker serve --workers``).

A request of ``/metrics`` reaches any worker, which reads the metrics of the others from their Unix sockets in the state
directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Client, Listener
from pathlib import Path

from prometheus_client import Metric

from stoker.background_thread import BackgroundThread

#: Seconds for which a request waits for another worker. The metrics of one that does not answer are left out.
_SECONDS = 1.0


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
