"""
The metrics of all worker processes under one supervisor (``stoker serve --workers``).

A request of ``/metrics`` reaches any worker, which reads the metrics of the others from their Unix sockets. The sockets
are in the abstract namespace of Linux: they have no files, and accept processes of the same user only.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress

import structlog
from prometheus_client import Metric

_log = structlog.get_logger("stoker.http")

#: Seconds for which a request waits for the other workers. The metrics of those that do not answer are left out.
_SECONDS = 2.0
#: The process's id, user and group (``struct ucred``).
_CREDENTIALS = struct.Struct("3i")


class WorkerSockets:
    """The listening sockets of all workers. Create them before the workers are forked."""

    def __init__(self, workers: int) -> None:
        self._sockets = [_listen() for _ in range(workers)]

    def take(self, number: int) -> WorkerMetrics:
        """Return the metrics of worker ``number`` (from 1) in its process, which has no use for the other sockets."""
        addresses = [sock.getsockname() for sock in self._sockets]
        own = self._sockets[number - 1]
        for sock in self._sockets:
            if sock is not own:
                sock.close()
        return WorkerMetrics(number, own, [address for address in addresses if address != own.getsockname()])


class WorkerMetrics:
    """Exchanges metrics with the other workers. ``others`` are their addresses."""

    def __init__(self, number: int, listening: socket.socket, others: Sequence[bytes]) -> None:
        self.number = number
        self._listening = listening
        self._others = others

    def start(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """Start the thread that sends the metrics that ``collect`` returns to other workers."""
        threading.Thread(target=self._serve, args=(collect,), name="stoker-metrics", daemon=True).start()

    def read_others(self) -> list[Metric]:
        """Return the metrics of the other workers. Blocks, for two seconds at most."""
        until = time.monotonic() + _SECONDS
        metrics: list[Metric] = []
        with ExitStack() as stack:
            connections = []
            for address in self._others:
                connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                connection.settimeout(_left(until))
                with suppress(OSError):
                    connection.connect(address)
                    connections.append(connection)
            for connection in connections:
                with suppress(OSError, ValueError):  # ValueError: the worker ended while it sent
                    metrics += _decode(_receive(connection, until))
        return metrics

    def _serve(self, collect: Callable[[], Iterable[Metric]]) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection:
                try:
                    connection.settimeout(_SECONDS)
                    if _is_own_user(connection):
                        connection.sendall(_encode(collect()))
                except OSError:
                    pass  # the other worker has ended, or no longer waits
                except Exception:  # the next request may succeed
                    _log.exception("metrics.not_collected")


def merge(metrics: Iterable[Metric]) -> list[Metric]:
    """Return each metric once, with the samples of all of the same name."""
    merged: dict[str, Metric] = {}
    for metric in metrics:
        first = merged.setdefault(metric.name, metric)
        if first is not metric:
            first.samples.extend(metric.samples)
    return list(merged.values())


def _listen() -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind("")  # Linux chooses an abstract address
    listening.listen()
    return listening


def _is_own_user(connection: socket.socket) -> bool:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(data)
    return bool(user == os.geteuid())


def _left(until: float) -> float:
    return max(0.001, until - time.monotonic())


def _receive(connection: socket.socket, until: float) -> bytes:
    """Return all bytes until the end of the connection. Raises TimeoutError after ``until``."""
    data = b""
    while True:
        connection.settimeout(_left(until))
        chunk = connection.recv(1 << 16)
        if not chunk:
            return data
        data += chunk


def _encode(metrics: Iterable[Metric]) -> bytes:
    return json.dumps(
        [
            [metric.name, metric.documentation, metric.type, [sample[:3] for sample in metric.samples]]
            for metric in metrics
        ]
    ).encode()


def _decode(data: bytes) -> list[Metric]:
    metrics = []
    for name, text, kind, samples in json.loads(data):
        metric = Metric(name, text, kind)
        for sample in samples:
            metric.add_sample(*sample)
        metrics.append(metric)
    return metrics
