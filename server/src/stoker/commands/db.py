"""Maintain the database."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stoker import settings as all_settings
from stoker.commands import reported_as_click_errors
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
    for option in (
        click.option("--database", metavar="URL", help="The database, if it is not in the state directory."),
        click.option("--state-dir", type=click.Path(path_type=Path), help="The installation's state directory."),
        click.option("--config", type=click.Path(path_type=Path), help="TOML file with settings."),
    ):
        command = option(command)
    return command


@contextmanager
def _open(
    config: Path | None, state_dir: Path | None, database: str | None, *, needs_secret: bool = False
) -> Iterator[tuple[Settings, Store]]:
    """
    Yield the settings and the open store of an installation that has served, and print which database this is.

    With ``needs_secret``, the installation must have its site secret. Errors become those of the command line.
    """
    from stoker import serve

    with reported_as_click_errors():
        flags = {"state_dir": state_dir, "database": database}
        settings = all_settings.load(flags, os.environ, config or all_settings.config_file(os.environ))
        has_database = serve.has_database(settings)
        if not has_database or (needs_secret and not serve.has_site_secret(settings)):
            missing = "a site secret" if has_database else serve.name_database(settings)
            raise Invalid(
                f"no Stoker has served from {settings.state_dir}, which lacks {missing}: name another directory with"
                " --state-dir, or the settings of the service with --config or STOKER_CONFIG"
            )
        store = serve.open_store(settings, serve.key_source(settings))
        try:
            click.echo(f"Database: {serve.name_database(settings)}", err=True)
            yield settings, store
        finally:
            store.close()


@db.command("purge")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="The age of all records but those of the audit log (default: their settings).",
)
@_of_installation
def purge(days: float | None, config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Delete old records now, as a running Stoker does every hour.

    These are records of deleted stacks, events, earlier runs, output and entries of the audit log, each older than its
    setting. Only a running Stoker deletes ended triggers.

    Safe to run while Stoker serves the database.
    """
    from stoker.work import Work  # imported late, because the help text does not need it
    from stoker.work.retention import KINDS, Retention

    with _open(config, state_dir, database) as (settings, store):
        ages: dict[str, float] = dict(settings.retention)
        if days is not None:
            ages = {**dict.fromkeys(ages, days), "audit": settings.audit_retention_days}
        retention = Retention(store, Work(store), ages)
        for kind in KINDS:
            click.echo(f"purged {retention.purge(kind.name)} {kind.noun}")


@db.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@_of_installation
def status(as_json: bool, config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Show the size of the database and of each table.

    Safe to run while Stoker serves the database.
    """
    from stoker.store import site

    with _open(config, state_dir, database) as (_, store), store.read() as tx:
        sizes = site.read_sizes(tx)
    if as_json:
        click.echo(json.dumps(asdict(sizes)))
        return
    free = f", of which {_shown(sizes.free_bytes)} are free" if sizes.dialect == "sqlite" else ""
    click.echo(f"{sizes.dialect}: {_shown(sizes.total_bytes)}{free}")
    click.echo(f"{'table':24}{'rows':>12}{'table':>12}{'indexes':>12}")
    for table in sizes.tables:
        click.echo(f"{table.name:24}{table.rows:>12}{_shown(table.table_bytes):>12}{_shown(table.index_bytes):>12}")


def _shown(size: int | None) -> str:
    """Return a number of bytes for people."""
    if size is None:
        return "unknown"
    for unit in ("B", "kB", "MB"):
        if size < 10_000:
            return f"{size} {unit}"
        size = round(size / 1000)
    return f"{size} GB"


@db.command("sweep")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@_of_installation
def sweep(dry_run: bool, config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Remove orphans: queues, containers, objects, servers, networks and volumes of resources that no longer exist.

    Includes an external Swift, Zaqar and OpenStack, if the settings (file or STOKER_… variables) name one. Safe to run
    while Stoker serves the database.
    """
    from stoker import serve

    removed = failed = 0
    with _open(config, state_dir, database, needs_secret=True) as (settings, store):
        secret = serve.load_site_secret(settings, store)
        for orphan in serve.collect_garbage(settings, store, secret, dry_run=dry_run):
            if orphan.problem is None:
                removed += 1
                click.echo(f"{orphan.what}: {'would be removed' if dry_run else 'removed'}")
            else:
                failed += 1
                click.echo(f"{orphan.what}: not removed: {orphan.problem}", err=True)
    click.echo(f"{removed} orphans {'would be removed' if dry_run else 'removed'}")
    if failed:
        raise SystemExit(1)


@db.command("rotate-keys")
@_of_installation
def rotate_keys(config: Path | None, state_dir: Path | None, database: str | None) -> None:
    """Encrypt the secrets in the database with a new key.

    The new key is stored in the state directory. If the setting encryption_keys has the keys, the first of them is the
    new key. Safe to run while Stoker serves from the same state directory. After an interruption, run the command
    again.
    """
    from stoker import serve
    from stoker.store import maintenance
    from stoker.store.encryption import RELOAD_SECONDS

    passes = 0
    with _open(config, state_dir, database, needs_secret=True) as (settings, store):
        serve.load_site_secret(settings, store)  # refuses the secret of another site
        if serve.add_key(settings):
            time.sleep(2 * RELOAD_SECONDS)  # until all processes encrypt with the new key
        count = maintenance.rotate_keys(store)
        while again := maintenance.rotate_keys(store):
            if (passes := passes + 1) == _PASSES:
                raise Conflict(_STILL_OLD)
            count += again
        serve.drop_old_keys(settings)
    click.echo(f"{count} secrets are encrypted with the newest key; no other is needed")
