"""The options that `stoker relay run` and `stoker relay install` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from stoker_relay.settings import RelaySettings, read_file

_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--centre", required=True, metavar="URL", help="The URL of the central Stoker."),
    click.option(
        "--key-file",
        type=_FILE,
        required=True,
        metavar="FILE",
        help="The file with the key that `stoker relay create` has printed.",
    ),
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
    click.option("--port", type=click.IntRange(1, 65535), default=8005, show_default=True, help="The port."),
    click.option("--ca-file", type=_FILE, metavar="FILE", help="The CA of the central Stoker's certificate."),
    click.option("--tls-cert", type=_FILE, metavar="FILE", help="The relay's certificate, for HTTPS."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="The key of the relay's certificate."),
    click.option(
        "--insecure-http",
        is_flag=True,
        help="Serve other machines without TLS: everyone on the network path can read keys and scripts.",
    ),
    click.option(
        "--spool-mb",
        type=click.IntRange(1, 1_000_000),
        default=1024,
        show_default=True,
        help="Megabytes of reports that may wait for the central Stoker.",
    ),
    click.option(
        "--spool-days",
        type=click.IntRange(1, 3650),
        default=30,
        show_default=True,
        help="Days after which a report is deleted that the central Stoker has not accepted.",
    ),
    click.option(
        "--metrics-token-file",
        type=_FILE,
        metavar="FILE",
        help="The file with a token that admits other machines to /metrics (default: this machine only).",
    ),
    click.option(
        "--connections",
        type=click.IntRange(1, 1000),
        default=16,
        show_default=True,
        help="Connections to the central Stoker, besides one for each 500 agents.",
    ),
)


def relay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def to_settings(options: dict[str, Any], state_dir: Path) -> RelaySettings:
    """Return the settings that the options say. Raises Unusable if a file cannot be read."""
    token_file = options["metrics_token_file"]
    return RelaySettings(
        centre=options["centre"],
        key=read_file(options["key_file"], "--key-file").strip(),
        state_dir=state_dir,
        host=options["host"],
        port=options["port"],
        ca_file=options["ca_file"],
        tls_cert=options["tls_cert"],
        tls_key=options["tls_key"],
        insecure_http=options["insecure_http"],
        spool_bytes=options["spool_mb"] * 1024 * 1024,
        spool_days=options["spool_days"],
        metrics_token=read_file(token_file, "--metrics-token-file").strip() if token_file else "",
        connections=options["connections"],
    )
