"""
The state directory: database, keys, logs and logins of one installation, locked by one process at a time.

Only its owner can read its contents. The directory of the local servers is not changed, because their scripts create
its files.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from stoker.model.errors import Conflict, Invalid
from stoker.settings import Settings

_PRIVATE_UMASK = 0o077
#: Subdirectories whose files get restricted permissions, too.
_FOLDERS = ("keys", "logs")
#: At least one of them is in the state directory of every site.
_MARKS = {"admin.json", "keys", "keystone.url", "lock", "stoker.db"}


def lock(settings: Settings) -> int:
    """
    Create the state directory if it is missing, restrict its permissions and lock it.

    Returns the open lock file; the lock lasts until the file is closed. Also sets the umask of this process, so that
    files it creates anywhere are accessible to its own user only. Raises Conflict if another process holds the lock,
    Invalid if another user owns a part of the directory, or if the directory has other files, but none of a site.
    """
    os.umask(_PRIVATE_UMASK)
    path = settings.state_dir
    path.mkdir(parents=True, exist_ok=True)
    _refuse_foreign(path)
    restrict(_entries(path))
    file = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise Conflict(f"another stoker serves from {path}: stop it, or choose another --state-dir") from None
    return file


def restrict(paths: Iterable[Path]) -> None:
    """
    Remove all permissions of group and others from ``paths``; missing paths and symbolic links are skipped.

    Raises Invalid for a path of another user, because its owner could change the file whatever its mode.
    """
    for path in paths:
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            closed = next(parent for parent in path.parents if os.access(parent.parent, os.X_OK, effective_ids=True))
            raise _other_owner(closed, closed.stat()) from None
        if stat.S_ISLNK(status.st_mode):
            continue
        if status.st_uid != os.geteuid():
            raise _other_owner(path, status)
        mode = stat.S_IMODE(status.st_mode)
        if mode & _PRIVATE_UMASK:
            path.chmod(mode & ~_PRIVATE_UMASK)


def admin_file(state_dir: Path) -> Path:
    """The file with the administrator's login for this installation."""
    return state_dir / "admin.json"


def _refuse_foreign(path: Path) -> None:
    names = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")} - {"lost+found"}
    if names and not names & _MARKS:
        raise Invalid(
            f"{path} is neither empty nor the state directory of a site: it has {', '.join(sorted(names)[:3])}. To"
            " restore a backup, copy stoker.db, admin.json and the directory keys into it; for a new site, choose an"
            " empty --state-dir"
        )


def _entries(path: Path) -> Iterator[Path]:
    yield path.resolve()
    for folder in (path, *(path / name for name in _FOLDERS)):
        if folder.is_dir():
            yield folder
            yield from (entry for entry in sorted(folder.iterdir()) if entry.is_file())


def _other_owner(path: Path, status: os.stat_result) -> Invalid:
    owner = _user_name(status.st_uid)
    return Invalid(
        f"{path} belongs to user {owner}, not to {_user_name(os.geteuid())}: run stoker as its owner (sudo -u {owner}"
        " …), or choose another --state-dir or --database"
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
