"""Runs one relay until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import sys
from collections.abc import Callable
from types import FrameType

import structlog
import uvicorn

from stoker_relay.agent_polls import AgentPolls
from stoker_relay.centre import Centre
from stoker_relay.certificate import Certificate
from stoker_relay.database import Database
from stoker_relay.delivery import Delivery
from stoker_relay.downloads import Downloads
from stoker_relay.http_api import RelayApp
from stoker_relay.known_keys import KnownKeys
from stoker_relay.metrics import Metrics
from stoker_relay.results import Results
from stoker_relay.settings import RelaySettings, Unusable
from stoker_relay.shared_polls import Batch, Batches
from stoker_relay.spool import Spool

#: Agents keep their connection between two polls.
_KEEP_ALIVE_SECONDS = 75
_LAST_REQUESTS_SECONDS = 3


class _Server(uvicorn.Server):
    """Answers the open polls when the process shall stop."""

    def __init__(self, config: uvicorn.Config, polls: AgentPolls) -> None:
        super().__init__(config)
        self._polls = polls

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at SIGTERM or SIGINT."""
        super().handle_exit(sig, frame)
        self._polls.close()


def run(settings: RelaySettings, on_ready: Callable[[], None]) -> None:
    """Run the relay. ``on_ready`` is called when it listens. Raises Unusable."""
    _configure_log()
    _raise_descriptor_limit()
    listening = _listen(settings)
    with contextlib.closing(listening), contextlib.closing(Database(settings.state_dir / "relay.db")) as database:
        metrics = Metrics()
        spool = Spool(database, settings.key, settings.spool_bytes, metrics)
        uvicorn.config.LOGGING_CONFIG = {"version": 1, "disable_existing_loggers": False}
        asyncio.run(_run(settings, database, spool, metrics, listening, on_ready))


async def _run(
    settings: RelaySettings,
    database: Database,
    spool: Spool,
    metrics: Metrics,
    listening: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    certificate = None
    if settings.tls_cert is not None and settings.tls_key is not None:
        certificate = Certificate(settings.tls_cert, settings.tls_key)
    centre, known_keys = Centre(settings), KnownKeys(database)
    batches = Batches(lambda: Batch(centre, known_keys, metrics), settings.batch)
    polls = AgentPolls(centre, known_keys, batches)
    downloads = Downloads(settings.state_dir / "downloads")
    app = RelayApp(centre, polls, Results(centre), spool, known_keys, downloads, metrics, settings.metrics_token)
    _watch(metrics, centre, polls, spool)
    delivery = Delivery(centre, spool, metrics, settings.spool_days * 86400)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_LAST_REQUESTS_SECONDS,
        backlog=4096,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    if certificate is not None:
        config.load()
        config.ssl = certificate.context
    tasks = [asyncio.create_task(work) for work in (polls.run(), delivery.run(), delivery.run_expiry())]
    try:
        on_ready()
        await _Server(config, polls).serve(sockets=[listening])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await batches.close()
        await centre.close()


def _watch(metrics: Metrics, centre: Centre, polls: AgentPolls, spool: Spool) -> None:
    metrics.watch("centre_up", "Whether the central Stoker answered the last request.", lambda: centre.is_reachable)
    metrics.watch("held_polls", "Open polls of agents.", lambda: len(polls))
    metrics.watch("agents", "Agents that polled within the last minutes.", polls.count_agents)
    metrics.watch("spool_requests", "Requests that wait for the central Stoker.", lambda: len(spool))
    metrics.watch("spool_bytes", "Bytes of these requests.", lambda: spool.size)


def _listen(settings: RelaySettings) -> socket.socket:
    """Open the listening socket. Raises Unusable."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise Unusable(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None
    listening.listen(4096)
    return listening


def _raise_descriptor_limit() -> None:
    """Allow as many connections as the system permits: each agent has one, or several while it runs a config."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _configure_log() -> None:
    logging.basicConfig(level="INFO", stream=sys.stderr, format="%(message)s")
    for noisy in ("httpx2", "httpcore2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
