"""Maintain the database."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stoker import settings as all_settings
from stoker.commands.errors import reported_as_click_errors
from stoker.model.errors import Conflict, Invalid

if TYPE_CHECKING:
    from stoker.settings import Settings
    from stoker.store.open import Store

#: Maximum number of passes; processes that do not know the newest key yet encrypt with an older one between passes.
_PASSES = 5
_STILL_OLD = (
    "a process that serves this database encrypts with an older key: give it the newest one, restart it, and run the"
    " command again"
)


@click.group("db")
def db() -> None:
    """Maintain the database."""
    os.umask(0o077)  # files that SQLite creates beside the database must be private, too


def _of_installation(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name the database."""
    command = click.option("--database", metavar="URL", help="The database, if it is not in the state directory.")(
        command
    )
    return click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory.")(
        command
    )


def _open_site(state_dir: Path | None, database: str | None, config: Path | None) -> tuple[Settings, Store]:
    """Return the settings and the open store of an installation that has served. Raises Invalid."""
    from stoker import serve

    flags = {"state_dir": state_dir, "database": database}
    settings = all_settings.load(flags, os.environ, config or all_settings.config_file(os.environ))
    if not serve.has_site_secret(settings):
        raise Invalid(f"no Stoker has served from {settings.state_dir}: name another with --state-dir")
    return settings, serve.open_store(settings, serve.key_source(settings))


@db.command("purge")
@click.option("--older-than", "days", type=click.FloatRange(min=0), default=30, show_default=True, metavar="DAYS")
@_of_installation
def purge(days: float, state_dir: Path | None, database: str | None) -> None:
    """Delete old data: stacks deleted DAYS ago, with their events and snapshots, and output of runs.

    Entries of the audit log are deleted after audit_retention_days.

    Safe to run while Stoker serves the database.
    """
    with reported_as_click_errors():
        # Imported late, because the help text does not need it.
        from stoker.deployments import retention
        from stoker.serve import open_store
        from stoker.store import audit, stacks
        from stoker.store.purge import in_batches

        file = all_settings.config_file(os.environ)
        flags = {"state_dir": state_dir, "database": database}
        settings = all_settings.load(flags, os.environ, file)
        store = open_store(settings)
        try:
            now = datetime.now(UTC)
            before = now - timedelta(days=days)
            with store.read() as tx:
                count = stacks.count_gone(tx, before)
            in_batches(store, lambda tx, most: stacks.purge(tx, before, most))
            audit_age = timedelta(days=settings.audit_retention_days)
            chunks = retention.purge(store, before)
            decisions = in_batches(store, lambda tx, most: audit.purge(tx, now - audit_age, most))
        finally:
            store.close()
    click.echo(f"purged {count} deleted stacks and {chunks} pieces of output")
    if decisions:
        click.echo(f"purged {decisions} entries of the audit log")


@db.command("sweep")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--config", type=click.Path(path_type=Path), help="TOML file with settings.")
@_of_installation
def sweep(dry_run: bool, config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Remove orphans: queues, containers and objects of resources that no longer exist.

    Includes an external Swift and Zaqar, if the settings (file or STOKER_… variables) name one. Safe to run while
    Stoker serves the database.
    """
    with reported_as_click_errors():
        from stoker import serve

        settings, store = _open_site(state_dir, database, config)
        removed = failed = 0
        try:
            secret = serve.load_site_secret(settings, store)
            for orphan in serve.collect_garbage(settings, store, secret, dry_run=dry_run):
                if orphan.problem is None:
                    removed += 1
                    click.echo(f"{orphan.what}: {'would be removed' if dry_run else 'removed'}")
                else:
                    failed += 1
                    click.echo(f"{orphan.what}: not removed: {orphan.problem}", err=True)
        finally:
            store.close()
    click.echo(f"{removed} orphans {'would be removed' if dry_run else 'removed'}")
    if failed:
        raise SystemExit(1)


@db.command("rotate-keys")
@click.option("--config", type=click.Path(path_type=Path), help="TOML file with settings.")
@_of_installation
def rotate_keys(config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Encrypt the secrets in the database with a new key.

    The new key is stored in the state directory. If the setting encryption_keys has the keys, the first of them is the
    new key. Safe to run while Stoker serves from the same state directory. After an interruption, run the command
    again.
    """
    with reported_as_click_errors():
        from stoker import serve
        from stoker.store import key_rotation
        from stoker.store.encryption import RELOAD_SECONDS

        settings, store = _open_site(state_dir, database, config)
        passes = 0
        try:
            serve.load_site_secret(settings, store)  # refuses the secret of another site
            if serve.add_key(settings):
                time.sleep(2 * RELOAD_SECONDS)  # until all processes encrypt with the new key
            count = key_rotation.rotate(store)
            while again := key_rotation.rotate(store):
                if (passes := passes + 1) == _PASSES:
                    raise Conflict(_STILL_OLD)
                count += again
            serve.drop_old_keys(settings)
        finally:
            store.close()
    click.echo(f"{count} secrets are encrypted with the newest key; no other is needed")
