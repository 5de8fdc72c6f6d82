"""What one installation keeps: a database, and a state directory that one process holds at a time."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from pathlib import Path

import sqlalchemy as sa

from stoker.model.errors import Conflict, Invalid, Unavailable
from stoker.settings import Settings
from stoker.store import migrate
from stoker.store.open import Store


def open_store(settings: Settings) -> Store:
    """The migrated store. Raises Invalid, Unavailable, or Conflict for a database newer than this program."""
    try:
        store = Store(settings.database_url)
        migrate.upgrade(store.engine)
    except (sa.exc.ArgumentError, ValueError) as error:  # the latter for a port that is no number
        shown = re.sub(r"(:[^:@/]*):.*@", r"\1:***@", settings.database_url)
        raise Invalid(f"cannot use the database URL {shown!r}: {error}") from None
    except sa.exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise Unavailable(f"cannot open the database: {cause}") from None
    return store


def lock(settings: Settings) -> int:
    """Hold the state directory. Raises Conflict when another process does."""
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(settings.state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise Conflict(
            f"another stoker serves from {settings.state_dir}: stop it, or choose another --state-dir"
        ) from None
    return file


def has_secret(settings: Settings) -> bool:
    """Whether the site's secret is kept in the state directory already."""
    return _secret_file(settings).exists()


def _secret_file(settings: Settings) -> Path:
    return settings.state_dir / "keys" / "site.key"


def site_secret(settings: Settings) -> bytes:
    """What agents' keys derive from: set, or made once and kept."""
    if settings.secret_key:
        return settings.secret_key.encode()
    path = _secret_file(settings)
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    return path.read_bytes()


def admin_file(state_dir: Path) -> Path:
    """Where the administrator's login of this installation is kept."""
    return state_dir / "admin.json"
