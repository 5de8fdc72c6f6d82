"""
GET /healthz and the list of API versions: a thread runs named checks, and requests read their latest results.

The checks of this module concern the disks and the certificate.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import structlog
from cryptography import x509

from stoker import VERSION
from stoker.background_thread import BackgroundThread
from stoker.http.access import PUBLIC
from stoker.http.api import Route
from stoker.http.contracts import Answer, Link, operation
from stoker.http.request import RequestContext, Response
from stoker.model.errors import StokerError, Unavailable
from stoker.settings import Settings

_MIB = 1024 * 1024
#: Bytes of a file system that should remain free; of a small one, a quarter.
_MINIMUM = 256 * _MIB
#: A certificate should be renewed when a tenth of its lifetime remains, or this time if that is less.
_LONGEST_NOTICE = timedelta(days=14)
_FORMAT = "%Y-%m-%d %H:%M UTC"
_log = structlog.get_logger("stoker.health")

#: Seconds between the end of one round of checks and the start of the next.
_INTERVAL = 1.0
#: Seconds after which a check that has not returned counts as failed.
_PATIENCE = 10.0

#: A health check. Returns if all is well, otherwise raises StokerError with the reason. May block.
Check = Callable[[], None]


class HealthReport:
    """
    Runs every check about once a second on its own thread.

    A busy service or an unresponsive database therefore does not delay GET /healthz. A check that hangs is reported as
    a problem.
    """

    def __init__(self, checks: Mapping[str, Check], advisory: Mapping[str, Check] | None = None) -> None:
        """A failure of ``checks`` makes the service unhealthy, one of ``advisory`` checks only degraded."""
        self._advisory = frozenset(advisory or {})
        self._checks = {**checks, **(advisory or {})}
        self._problems: dict[str, str] = {}
        #: Name of the running check and its start, by time.monotonic().
        self._running: tuple[str, float] | None = None
        self._stop = threading.Event()
        self._thread: BackgroundThread | None = None

    def start(self) -> None:
        self._thread = BackgroundThread("stoker-health", self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Does not wait for a check that hangs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def problems(self) -> dict[str, str]:
        """Return the reasons of failed checks by name; empty unless the service is unhealthy. Never blocks."""
        problems = {name: reason for name, reason in self._problems.items() if name not in self._advisory}
        running = self._running
        if running is not None and (seconds := time.monotonic() - running[1]) > _PATIENCE:
            problems[running[0]] = f"no answer for {seconds:.0f} seconds"
        return problems

    def warnings(self) -> dict[str, str]:
        """Return the reasons of failed advisory checks by name. Never blocks."""
        return {name: reason for name, reason in self._problems.items() if name in self._advisory}

    def refresh(self) -> None:
        """Run every check once, on the calling thread."""
        for name, check in self._checks.items():
            self._running = name, time.monotonic()
            reason = _reason(check)
            self._running = None
            if reason != self._problems.get(name):
                _log.warning("health.changed", check=name, reason=reason or "healthy")
            # A new dictionary for each change, so that readers on the event loop need no lock.
            others = {other: problem for other, problem in self._problems.items() if other != name}
            self._problems = {**others, name: reason} if reason else others

    def _run(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(_INTERVAL)


def _reason(check: Check) -> str | None:
    try:
        check()
    except StokerError as error:
        return error.message
    except Exception as error:  # a defect of the check must not end the thread
        return f"{type(error).__name__}: {error}"
    return None


class DiskSpace:
    """The free space of the file systems of ``paths``."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def check(self) -> None:
        """Raise Unavailable if a file system has less than the minimum."""
        for path, free, size in self.sizes():
            minimum = min(_MINIMUM, size // 4)
            if free < minimum:
                raise Unavailable(
                    f"the disk of {path} has {free // _MIB} MiB of free space, less than {minimum // _MIB} MiB:"
                    " free some before writes fail"
                )

    def sizes(self) -> Iterator[tuple[Path, int, int]]:
        """Yield a path, the free bytes and the size of each file system."""
        seen = set()
        for path in self._paths:
            try:
                figures, device = os.statvfs(path), path.stat().st_dev
            except OSError:
                continue  # other checks report a directory that is gone
            if device not in seen:
                seen.add(device)
                yield path, figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize


class CertificateExpiry:
    """Reads the first certificate of the setting ``tls_cert``, which may be replaced at any time."""

    def __init__(self, settings: Settings, now: Callable[[], datetime]) -> None:
        self.chain = settings.tls_cert if settings.has_tls else None
        self._now = now

    def end(self) -> datetime | None:
        """Return the end of the certificate; None without TLS or while the file cannot be read."""
        certificate = self._read()
        return None if certificate is None else certificate.not_valid_after_utc

    def check(self) -> None:
        """Raise Unavailable if the certificate has expired, or will soon."""
        certificate = self._read()
        if certificate is None:
            return
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        left = end - self._now()
        if left <= timedelta():
            raise Unavailable(
                f"the certificate in {self.chain} has expired ({end:{_FORMAT}}): clients refuse it, renew it"
            )
        if left < min((end - start) / 10, _LONGEST_NOTICE):
            raise Unavailable(f"the certificate in {self.chain} expires soon ({end:{_FORMAT}}): renew it")

    def _read(self) -> x509.Certificate | None:
        if self.chain is None:
            return None
        with suppress(OSError, ValueError):  # the handshake that needs the file logs the error
            return x509.load_pem_x509_certificates(self.chain.read_bytes())[0]
        return None


class Version(Answer):
    id: str
    status: str
    links: list[Link]


@operation(200, {"status": Literal["ok", "degraded"], "version": str, "warnings": list[str]})
async def health(request: RequestContext) -> Response:
    """
    Return whether every check of the health report passes. The status 503 names the failed checks.

    A degraded service works, with warnings that need an administrator.

    Raises Unavailable.
    """
    # Runs on the event loop and does not read the database.
    problems = request.app.health.problems()
    if problems:
        raise Unavailable("; ".join(f"{name}: {reason}" for name, reason in problems.items()))
    warnings = [f"{name}: {reason}" for name, reason in request.app.health.warnings().items()]
    return Response(200, {"status": "degraded" if warnings else "ok", "version": VERSION, "warnings": warnings})


@operation(300, {"versions": list[Version]})
def versions(request: RequestContext) -> Response:
    """List the versions of the API, as Heat does."""
    links = [{"rel": "self", "href": f"{request.app.settings.public_url}/v1/"}]
    return Response(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]})


ROUTES = [
    Route("GET", "/healthz", PUBLIC, health),
    Route("GET", "/", PUBLIC, versions),
    Route("GET", "/versions", PUBLIC, versions),
    Route("GET", "/v1", PUBLIC, versions),
]
