"""Run a relay: serve the agents of this site over a few connections to the central Stoker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from stoker_relay.options import relay_options, to_settings
from stoker_relay.settings import Unusable, check_settings


@click.command("run")
@relay_options
@click.option(
    "--state-dir", type=click.Path(path_type=Path), default=Path("/var/lib/stoker-relay"), show_default=True,
    help="The directory of the spool and of downloads.",
)  # fmt: skip
def run(state_dir: Path, **options: Any) -> None:
    """Run a relay: serve the agents of this site over a few connections to the central Stoker."""
    try:
        settings = to_settings(options, state_dir)
        check_settings(settings)
        # Imported late, because the server extra may be missing, and --help does not need it.
        from stoker_relay import process

        scheme = "https" if settings.tls_cert else "http"
        process.run(
            settings,
            lambda: click.echo(f"The relay serves at {scheme}://{settings.host}:{settings.port} for {settings.centre}"),
        )
    except Unusable as problem:
        raise click.ClickException(str(problem)) from None
    except ImportError as problem:
        remedy = "pip install 'stoker[server]'"
        raise click.ClickException(f"the relay needs the server's libraries: {remedy} ({problem})") from None
