"""Run a relay: serve the agents of this site over a few connections to the central Stoker."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

import click

from stoker.model.errors import StokerError
from stoker_relay.options import PROBLEM, RelaySettings, relay_options, to_settings


@click.command("run")
@relay_options
def run(**options: Any) -> None:
    """Run a relay: serve the agents of this site over a few connections to the central Stoker."""
    try:
        _run(to_settings(options))
    except StokerError as problem:
        raise click.ClickException(problem.message) from None
    except ImportError as problem:
        raise click.ClickException(f"the relay needs the server's libraries: {problem}") from None


def _run(settings: RelaySettings) -> None:
    """
    Serve until SIGTERM or SIGINT.

    systemd is told that the relay is ready after the first attempt to reach the central Stoker, and the result of each
    attempt. Raises Invalid and Unavailable, and ImportError if the server's libraries are missing.
    """
    # Imported late, because --help does not need them.
    from stoker import log
    from stoker.serve.http_server import listen, serve
    from stoker.serve.tls import Certificate
    from stoker_relay.center import Center
    from stoker_relay.changes import ChangeStream
    from stoker_relay.http_api import RelayApi, create_relay_app
    from stoker_relay.metrics import RelayMetrics

    log.configure("info", None)
    server = settings.server
    tls = Certificate(server.tls_cert, server.tls_key).context if server.has_tls else None
    [listening] = listen(server)
    center, metrics = Center(settings), RelayMetrics()
    api = RelayApi(server, center, metrics)
    stream = ChangeStream(center, api.polls, api.keys, metrics, lambda: _notify_systemd(center.problem))
    url = f"{'https' if tls else 'http'}://{server.host}:{server.port}"

    def ready() -> None:
        click.echo(f"The relay serves at {url} for {settings.center}")

    serve(create_relay_app(api), server, api.waiters, listening, ready, tls=tls, background=stream.run)


def _notify_systemd(problem: str | None) -> None:
    """Tell systemd (sd_notify) that the relay serves, and why it does not reach the central Stoker."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        status = "the central Stoker answers" if problem is None else f"{PROBLEM}{problem}"
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            message = f"READY=1\nSTATUS={' '.join(status.split())}"
            sender.sendto(message.encode(), "\0" + address[1:] if address.startswith("@") else address)
