"""The options that `stoker relay run` and `stoker relay install` have in common, and the settings that they make."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from stoker.addresses import has_host, is_loopback
from stoker.model.errors import Invalid
from stoker.settings import Settings, check_secret

#: The beginning of the service's status if the relay does not reach the central Stoker.
PROBLEM = "cannot reach the central Stoker: "
_KEY = re.compile(r"[0-9a-f-]{36}\.[0-9a-f]{64}")
_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--center", required=True, metavar="URL", help="The URL of the central Stoker."),
    click.option("--key-file", type=_FILE, required=True, help="The key that `stoker relay create` has printed."),
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
    click.option("--port", type=click.IntRange(1, 65535), default=8005, show_default=True, help="The port."),
    click.option("--ca-file", type=_FILE, help="The CA of the central Stoker's certificate."),
    click.option("--tls-cert", type=_FILE, help="The relay's certificate, for HTTPS."),
    click.option("--tls-key", type=_FILE, help="The key of the relay's certificate."),
    click.option("--insecure-http", is_flag=True, help="Serve other machines without TLS: everyone on the network path"
                 " can read keys and scripts."),
    click.option("--metrics-token-file", type=_FILE, help="The token, at least 32 bytes, that reads /metrics (default:"
                 " nobody reads /metrics)."),
    click.option("--connections", type=click.IntRange(1, 1000), default=16, show_default=True, help="Connections to the"
                 " central Stoker for requests of agents, besides the one for changes."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """
    The settings of one relay.

    ``center`` is the URL of the central Stoker, ``ca_file`` the CA of its certificate (None: the system's). ``key`` is
    the relay's own key. ``connections``: the maximum for requests of agents. ``server`` has the settings of the relay's
    HTTP server.
    """

    center: str
    key: str
    ca_file: Path | None
    connections: int
    server: Settings


def relay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def to_settings(options: dict[str, Any]) -> RelaySettings:
    """Return the settings that the options say. Raises Invalid if the relay cannot run with them."""
    token_file, center = options["metrics_token_file"], options["center"].rstrip("/")
    token = _read(token_file, "--metrics-token-file").strip() if token_file else ""
    settings = RelaySettings(
        center=center,
        key=_read(options["key_file"], "--key-file").strip(),
        ca_file=options["ca_file"],
        connections=options["connections"],
        server=Settings(
            host=options["host"],
            port=options["port"],
            tls_cert=options["tls_cert"] or Path(),
            tls_key=options["tls_key"] or Path(),
            insecure_http=options["insecure_http"],
            metrics_token=token,
            public_url=center,
        ),
    )
    _check(settings)
    return settings


def _check(settings: RelaySettings) -> None:
    server = settings.server
    if not (settings.center.startswith(("http://", "https://")) and has_host(settings.center)):
        raise Invalid(f"--center {settings.center!r} is not the URL of a Stoker, such as https://stoker.example:8004")
    if not _KEY.fullmatch(settings.key):
        raise Invalid("the key is not one that `stoker relay create` has printed: put it into the key file again")
    if server.has_tls != (server.tls_key != Path()):
        raise Invalid("--tls-cert and --tls-key go together: name both files, or none")
    if not (server.has_tls or server.insecure_http or is_loopback(server.host)):
        raise Invalid(
            f"other machines reach {server.host} without TLS, and agents send their keys: name --tls-cert and"
            " --tls-key, or allow it with --insecure-http"
        )
    if server.metrics_token:
        check_secret(server.metrics_token.encode(), "the token that --metrics-token-file names")
    if server.has_tls:
        _read(server.tls_cert, "--tls-cert")
        _read(server.tls_key, "--tls-key")
    if settings.ca_file is not None:
        try:
            ssl.create_default_context(cadata=_read(settings.ca_file, "--ca-file"))
        except (ssl.SSLError, ValueError):
            raise Invalid(f"{settings.ca_file} (named by --ca-file) has no certificates in PEM") from None


def _read(path: Path, option: str) -> str:
    """Return the text of a file. Raises Invalid, with the option that names the file."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no text"
        raise Invalid(f"cannot read {path} (named by {option}): {reason}") from None
