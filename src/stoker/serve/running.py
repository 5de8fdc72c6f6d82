"""One process that answers, until it is told to stop."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable
from types import FrameType

import structlog
import uvicorn

from stoker.http.waiters import Waiters
from stoker.model.errors import Unavailable
from stoker.serve.joining import Joined
from stoker.settings import Settings

_log = structlog.get_logger("stoker.serve")

#: Seconds that requests under way get when the server is told to stop.
_LAST_REQUESTS = 2


def listen(settings: Settings) -> socket.socket:
    """Raises Unavailable when the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise Unavailable(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None
    listening.listen(4096)
    return listening


class _Server(uvicorn.Server):
    """Lets long polls go before uvicorn waits for what is under way."""

    def __init__(self, config: uvicorn.Config, waiters: Waiters) -> None:
        super().__init__(config)
        self._waiters = waiters

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._waiters.close()
        await super().shutdown(sockets)


def run(joined: Joined, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then leave everything in order."""
    services = joined.services
    config = uvicorn.Config(
        joined.app,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # links come from public_url, whoever stands in front
        timeout_graceful_shutdown=_LAST_REQUESTS,
        timeout_keep_alive=75,
        backlog=4096,
    )
    server = _Server(config, services.waiters)
    services.store.hear()
    services.work.start()
    joined.retention.begin()
    if services.servers.local:
        services.servers.local.resume()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, _already_stopping)
    try:
        ready()
        # What is there by now stays: no collection of garbage has to look through it again.
        gc.collect()
        gc.freeze()
        server.run(sockets=[listening])
    finally:
        if services.servers.local:
            services.servers.local.shut_down()
        services.work.stop()
        services.store.close()
        _log.info("stopped")


def _already_stopping(_: int, __: FrameType | None) -> None:
    """uvicorn repeats the signal that it stopped for; by then there is nothing left to do."""
