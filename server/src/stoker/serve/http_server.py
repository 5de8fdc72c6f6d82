"""Runs the HTTP server of one process until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from types import FrameType
from typing import Any, cast

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from stoker.http import threads
from stoker.http.app import App
from stoker.http.hold import Waiters
from stoker.http.metrics import collect_process
from stoker.model.errors import Unavailable
from stoker.serve.protocol import ConnectionTable, LimitedProtocol
from stoker.serve.site import create_asgi
from stoker.settings import Settings

_log = structlog.get_logger("stoker.serve")

#: Seconds that requests in progress get after the signal to stop.
_LAST_REQUESTS = 2
#: Seconds that cancelled requests get after that to send their 503.
_LAST_ANSWERS = 1
#: Seconds that handlers on threads get after that; their clients have received a 503 already.
_LAST_CALLS = 3
#: Seconds after which a thread that computes yields to a waiting one. With Python's default of 5 ms, several such waits
#: add up over one request of another client while templates or large stacks are processed.
_SWITCH_SECONDS = 0.001
#: New objects between two garbage collections. With Python's default of 700, ten thousand requests in progress cause so
#: many collections, each of all these objects, that they take a sixth of the CPU.
_NEW_OBJECTS = 20_000
#: glibc's option, from <malloc.h>, and the size from which a block gets a memory mapping of its own.
_M_MMAP_THRESHOLD, _LARGE = -3, 128 * 1024
#: Connections that are checked for deadlines in one second. To check 10,000 took a twentieth of the CPU of idle agents.
_CHECKED_CONNECTIONS = 4000


def listen(settings: Settings) -> list[socket.socket]:
    """
    Open the listening sockets at the configured host and port, one for each worker process.

    Raises Unavailable if the address cannot be bound.
    """
    if settings.workers == 1:
        return [_bind(settings, shared=False)]
    _bind(settings, shared=False).close()  # with SO_REUSEPORT, two installations could share a port by mistake
    return [_bind(settings, shared=True) for _ in range(settings.workers)]


def _bind(settings: Settings, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise Unavailable(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None
    listening.listen(4096)
    return listening


class _Server(uvicorn.Server):
    """
    Expires overdue connections, and ends long polls and later all connections when the server stops.

    Connections are checked once a second, thousands of them every few seconds.
    """

    def __init__(self, config: uvicorn.Config, waiters: Waiters) -> None:
        super().__init__(config)
        self._waiters = waiters

    async def on_tick(self, counter: int) -> bool:
        """uvicorn calls this method ten times a second."""
        if counter % (10 * (1 + len(self.server_state.connections) // _CHECKED_CONNECTIONS)) == 0:
            now = asyncio.get_running_loop().time()
            for connection in [protocol for protocol in self._limited() if protocol.deadline < now]:
                connection.expire()
        return await super().on_tick(counter)

    def _limited(self) -> set[LimitedProtocol]:
        return cast(set[LimitedProtocol], self.server_state.connections)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._waiters.close()
        ending = asyncio.ensure_future(self._end_connections())
        await super().shutdown(sockets)
        ending.cancel()

    async def _end_connections(self) -> None:
        """
        End what is left of requests and connections after the grace period.

        uvicorn would log an error, also if only idle TLS connections are left: these stay open until their clients
        confirm the end.
        """
        await asyncio.sleep(_LAST_REQUESTS)
        if tasks := list(self.server_state.tasks):
            _log.warning("server.requests_cancelled", count=len(tasks))
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a cancelled task is an error to uvicorn
            for connection in self._limited():
                connection.end_unanswered()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_LAST_ANSWERS)
        for connection in list(self._limited()):
            connection.transport.abort()


class _Loop(uvloop.Loop):
    """An event loop whose limit for a TLS handshake equals the limit for a request's head."""

    def __init__(self, handshake_seconds: float) -> None:
        super().__init__()
        self._handshake_seconds = handshake_seconds

    async def create_server(  # type: ignore[override]  # uvloop's overloads differ in what they do not pass on
        self, *args: Any, ssl: ssl.SSLContext | None = None, **more: Any
    ) -> Any:
        if ssl is not None:
            more["ssl_handshake_timeout"] = self._handshake_seconds
        return await super().create_server(*args, ssl=ssl, **more)


def run(app: App, listening: socket.socket, ready: Callable[[], None], *, tls: ssl.SSLContext | None = None) -> None:
    """Do what ``serve`` does for a site, and stop all of its components afterwards, in order."""
    _start(app)
    try:
        serve(create_asgi(app), app.settings, app.waiters, listening, ready, tls=tls)
    finally:
        _stop(app)


def serve(
    asgi_app: ASGIApp,
    settings: Settings,
    waiters: Waiters,
    listening: socket.socket,
    ready: Callable[[], None],
    *,
    tls: ssl.SSLContext | None = None,
    background: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """
    Serve an ASGI application until SIGTERM or SIGINT.

    ``waiters`` are closed first at the stop. ``listening`` is the socket of ``listen``; ``ready`` is called once before
    the first request is accepted. ``tls`` is the context for HTTPS; None serves HTTP. ``background`` runs on the event
    loop beside the server, until it is cancelled at the end.
    """
    _return_large_blocks()
    config = uvicorn.Config(
        asgi_app,
        # uvicorn only calls the value, so a partial can replace the class.
        http=cast(type[asyncio.Protocol], partial(LimitedProtocol, settings.client_timeout, ConnectionTable(settings))),
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # links derive from public_url, whatever proxy is in front
        timeout_graceful_shutdown=_LAST_REQUESTS + 2 * _LAST_ANSWERS,
        backlog=4096,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    server = _Server(config, waiters)

    def stop(_: int, __: FrameType | None) -> None:
        """Stop before uvicorn handles signals. It raises a signal once more after it has stopped the server."""
        server.should_exit = True

    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, stop)
    sys.setswitchinterval(_SWITCH_SECONDS)
    ready()
    # Objects of the start-up live as long as the process: exclude them from later garbage collections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    with asyncio.Runner(loop_factory=lambda: _Loop(settings.client_timeout)) as runner:
        runner.run(_serve(server, listening, background))


async def _serve(
    server: _Server, listening: socket.socket, background: Callable[[], Coroutine[Any, Any, None]] | None
) -> None:
    task = None if background is None else asyncio.ensure_future(background())
    try:
        await server.serve(sockets=[listening])
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait({task})


def _start(app: App) -> None:
    app.store.start_listener()
    app.work.start()
    app.health.start()
    app.servers.last_seen.start()
    if app.worker:
        app.worker.start(partial(collect_process, app))
    app.retention.begin()
    if app.servers.compute:
        app.servers.compute.resume()


def _stop(app: App) -> None:
    if app.servers.compute:
        app.servers.compute.shut_down()
    app.work.stop()
    app.health.stop()
    app.servers.last_seen.stop()
    app.store.close()
    ended = threads.shut_down(_LAST_CALLS)
    _log.info("server.stopped")
    if not ended:
        # A handler that hangs, for example in an unreachable database, would keep the interpreter from exiting.
        _log.warning("server.stopped_with_unfinished_calls")
        logging.shutdown()
        os._exit(0)


def _return_large_blocks() -> None:
    """
    Have glibc unmap large blocks as soon as they are freed: 16 MB less for 5,000 agents.

    Otherwise glibc keeps such blocks in the arena of each thread. Without glibc, this function has no effect.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
