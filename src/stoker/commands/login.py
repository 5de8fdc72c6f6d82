"""How to log in to an installation, kept in its state directory: as its administrator, or at which Keystone."""

from __future__ import annotations

import json
import os
from pathlib import Path

from stoker.model.errors import EntityNotFound, Invalid


def keep(path: Path, *, auth_url: str, password: str, ca_file: Path | None = None) -> dict[str, str]:
    """``ca_file``: what verifies ``auth_url``, where the system does not know its CA."""
    said = {"auth_url": auth_url, "username": "admin", "password": password, "project_name": "default"}
    if ca_file is not None:
        said["cacert"] = str(ca_file)
    fresh = path.with_suffix(".new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(said, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return said


def at_keystone(state_dir: Path) -> str | None:
    """The Keystone whose users an installation has; None: it has its own."""
    try:
        return _note(state_dir).read_text().strip()
    except OSError:
        return None


def note_keystone(state_dir: Path, auth_url: str | None) -> None:
    """For ``stoker env``, which does not know what flags the server was started with."""
    if auth_url is None:
        _note(state_dir).unlink(missing_ok=True)
    else:
        _note(state_dir).write_text(f"{auth_url}\n")


def _note(state_dir: Path) -> Path:
    return state_dir / "keystone.url"


def read(path: Path) -> dict[str, str]:
    """Raises EntityNotFound when there is none, Invalid when it cannot be read."""
    try:
        said: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        raise EntityNotFound(
            f"there is no login in {path.parent}: start `stoker serve` with this state directory once"
            " (with --reset-admin-password when its database is older)"
        ) from None
    except (OSError, ValueError) as error:
        raise Invalid(f"cannot read {path}: {error}") from None
    names = ("auth_url", "username", "password", "project_name")
    if not isinstance(said, dict) or not all(isinstance(said.get(name), str) for name in names):
        raise Invalid(f"cannot read {path}: it is no login; `stoker serve --reset-admin-password` writes a new one")
    return said
