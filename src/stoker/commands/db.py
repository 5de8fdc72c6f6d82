"""Look after the database."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from stoker import settings as all_settings
from stoker.commands.errors import told


@click.group("db")
def db() -> None:
    """Look after the database."""


@db.command("purge")
@click.option("--older-than", "days", type=click.FloatRange(min=0), default=30, show_default=True, metavar="DAYS")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")
@click.option("--database", metavar="URL", help="Its database, where that is none in the state directory.")
def purge(days: float, state_dir: Path | None, database: str | None) -> None:
    """Forget stacks that were deleted so many days ago, with their events and snapshots.

    A Stoker that serves from the same database goes on undisturbed.
    """
    with told():
        # Late: help needs none of it.
        from stoker.serve import open_store
        from stoker.store import stacks

        file = all_settings.config_file(os.environ)
        flags = {"state_dir": state_dir, "database": database}
        store = open_store(all_settings.load(flags, os.environ, file))
        try:
            before = datetime.now(UTC) - timedelta(days=days)
            count = store.write(lambda tx: stacks.purge(tx, before))
        finally:
            store.close()
    click.echo(f"{count} deleted stacks are forgotten")
