"""Look after the database."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from stoker import settings as all_settings
from stoker.commands.errors import told
from stoker.model.errors import Invalid


@click.group("db")
def db() -> None:
    """Look after the database."""


def _of_installation(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which database is meant."""
    command = click.option(
        "--database", metavar="URL", help="Its database, where that is none in the state directory."
    )(command)
    return click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")(
        command
    )


@db.command("purge")
@click.option("--older-than", "days", type=click.FloatRange(min=0), default=30, show_default=True, metavar="DAYS")
@_of_installation
def purge(days: float, state_dir: Path | None, database: str | None) -> None:
    """Forget stacks that were deleted so many days ago, with their events and snapshots; and what runs wrote then.

    Entries of the audit log go when they are older than the setting audit_retention_days says.

    A Stoker that serves from the same database goes on undisturbed.
    """
    with told():
        # Late: help needs none of it.
        from stoker.deployments import retention
        from stoker.serve import open_store
        from stoker.store import audit, stacks

        file = all_settings.config_file(os.environ)
        flags = {"state_dir": state_dir, "database": database}
        settings = all_settings.load(flags, os.environ, file)
        store = open_store(settings)
        try:
            now = datetime.now(UTC)
            count = store.write(lambda tx: stacks.purge(tx, now - timedelta(days=days)))
            kept = timedelta(days=settings.audit_retention_days)
            chunks = retention.purge(store, now - timedelta(days=days))
            decisions = store.write(lambda tx: audit.purge(tx, now - kept))
        finally:
            store.close()
    click.echo(f"{count} deleted stacks are forgotten, and {chunks} pieces of output")
    if decisions:
        click.echo(f"{decisions} entries of the audit log are forgotten")


@db.command("sweep")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--config", type=click.Path(path_type=Path), help="TOML file with settings.")
@_of_installation
def sweep(dry_run: bool, config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Remove queues, containers and objects that were made for resources that are no more.

    Also those in a Swift or a Zaqar, where the settings (file or STOKER_… variables) name one. A Stoker that serves
    from the same database goes on undisturbed.
    """
    with told():
        from stoker import serve

        flags = {"state_dir": state_dir, "database": database}
        settings = all_settings.load(flags, os.environ, config or all_settings.config_file(os.environ))
        if not (settings.secret_key or serve.has_secret(settings)):
            raise Invalid(f"no Stoker has served from {settings.state_dir}: give its --state-dir")
        store = serve.open_store(settings)
        removed = failed = 0
        try:
            for each in serve.sweep(settings, store, dry_run=dry_run):
                if each.problem is None:
                    removed += 1
                    click.echo(f"{each.what}: {'would be removed' if dry_run else 'removed'}")
                else:
                    failed += 1
                    click.echo(f"{each.what}: still there: {each.problem}", err=True)
        finally:
            store.close()
    click.echo(f"{removed} leftovers {'would be removed' if dry_run else 'removed'}")
    if failed:
        raise SystemExit(1)
