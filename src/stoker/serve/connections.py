"""
Connection limits: for the whole process and for each client address, with a reserve for addresses with few connections.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

import structlog

from stoker.model.addresses import client_prefix
from stoker.settings import Settings

_log = structlog.get_logger("stoker.http")

#: File descriptors reserved for database connections, files and child processes.
_OWN_DESCRIPTORS = 256
#: Upper bound: more descriptors have no benefit, and some programs iterate over all descriptors that they may open.
_MOST_DESCRIPTORS = 1 << 20
#: An address with fewer connections than this may use the reserve.
_FEW = 8
#: Connections that may be refused with a response at the same time; further connections are reset.
_REFUSED = 64
#: Limits for buffered bytes (incomplete request heads and pipelined requests), for one address and for all addresses.
_BYTES_PER_ADDRESS = 16 * 1024 * 1024
_BYTES = 64 * 1024 * 1024
#: Seconds between two log lines about refused connections.
_LOG_INTERVAL = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """The limits of one connection: sizes in bytes, times in seconds, and the number of headers."""

    head_bytes: int
    head_seconds: float
    body_seconds: float
    keep_alive_seconds: float
    #: Applies to the URL alone, too.
    request_line_bytes: int = 16 * 1024
    headers: int = 200


class Address:
    """The counters of one client address: open connections and buffered bytes."""

    __slots__ = ("buffered", "connections", "is_proxy", "key")

    def __init__(self, key: str, *, is_proxy: bool) -> None:
        self.key = key
        self.is_proxy = is_proxy
        self.connections = 0
        self.buffered = 0


class ConnectionTable:
    """
    Counts connections by client address. Not thread-safe: used on the event loop only.

    ``max_connections_per_address`` = 0 in the settings means no limit per address. The last tenth of ``connections`` is
    a reserve for addresses that have few connections, so that one address cannot lock out all others. Addresses that
    the settings declare as proxies have no limit of their own.
    """

    def __init__(self, settings: Settings, connections: int) -> None:
        self._settings = settings
        self._most = connections
        self._unreserved = connections - max(1, connections // 10)
        self._per_address = settings.max_connections_per_address
        self._addresses: dict[str, Address] = {}
        self._connections = 0
        self._buffered = 0
        self._refused = 0
        self._next_log = 0.0

    def admit(self, host: str) -> Address | None:
        """Count a connection from ``host``. Returns None if a limit is reached."""
        is_proxy = self._settings.is_proxy(host)
        key = host if is_proxy else client_prefix(host)
        address = self._addresses.get(key) or Address(key, is_proxy=is_proxy)
        if self._is_full(address):
            self._note_refusal(key)
            return None
        self._addresses[key] = address
        address.connections += 1
        self._connections += 1
        return address

    def may_answer(self, connections: int) -> bool:
        """
        Whether a refused connection may stay open until its response is sent. ``connections``: the current number.
        """
        return connections <= self._most + _REFUSED

    def release(self, address: Address) -> None:
        """Undo ``admit`` for one closed connection."""
        address.connections -= 1
        self._connections -= 1
        if not address.connections:
            self._addresses.pop(address.key, None)

    def buffer(self, address: Address, size: int) -> bool:
        """Add ``size`` (negative to subtract) to the buffered bytes. Returns False if a limit is exceeded."""
        address.buffered += size
        self._buffered += size
        if self._buffered > _BYTES:
            return False
        return address.buffered <= _BYTES_PER_ADDRESS or address.is_proxy

    def _is_full(self, address: Address) -> bool:
        if self._connections >= self._most:
            return True
        if self._connections >= self._unreserved and address.connections >= _FEW:
            return True
        return bool(self._per_address and address.connections >= self._per_address and not address.is_proxy)

    def _note_refusal(self, key: str) -> None:
        """Log at most one line per interval, so that a flood of connections does not flood the log."""
        self._refused += 1
        now = time.monotonic()
        if now >= self._next_log:
            _log.warning(
                "connections.refused",
                address=key,
                refused=self._refused,
                connections=self._connections,
                max_connections=self._most,
                max_connections_per_address=self._per_address,
            )
            self._next_log, self._refused = now + _LOG_INTERVAL, 0


def raise_descriptor_limit() -> int:
    """Raise the process's limit of open files to the system's maximum. Returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return _MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def connection_limit(settings: Settings, descriptors: int) -> int:
    """The number of connections that this process accepts: the setting, bounded by the limit of open files."""
    possible = max(descriptors - _OWN_DESCRIPTORS, descriptors // 2)
    if settings.max_connections > possible:
        _log.warning("connections.limited", max_connections=settings.max_connections, possible=possible)
    return min(settings.max_connections or possible, possible)
