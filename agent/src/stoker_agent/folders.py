"""
Directories that other users of the machine cannot exchange for others while the agent changes their entries.

A path is opened directory by directory. Links are followed only where nobody but root, or the user of this process, can
make one, such as ``/var/run``. Root refuses a directory of its own that other users may change. In a directory of
another user, new entries belong to that user, unless the caller names an owner.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Tuple

#: A directory on the way needs no right to be listed.
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
#: Groups of the system, such as ``syslog``, to which Ubuntu gives /var/log, or ``staff``: an administrator decides who
#: belongs to them. ``users`` (100) is everybody's group on some systems.
_SYSTEM_GROUPS = {*range(1000)} - {100}


class UnsafePath(OSError):
    """Another user could redirect the access to a path. The text says how, and what helps."""


class State(NamedTuple):
    """What is at a path: ``kind`` is ``absent``, ``file``, ``directory``, ``link`` or ``other``, such as a device."""

    kind: str
    mode: int = 0
    uid: int = -1
    gid: int = -1
    size: int = 0
    #: Where a link leads.
    target: str = ""


class Folder:
    """
    An open directory, as a context manager: its ``handle`` stays that of the directory if its path leads elsewhere.

    With ``mode``, missing directories of the path are created. Raises UnsafePath and OSError.
    """

    def __init__(self, path: Path, mode: Optional[int] = None) -> None:
        self.path = path
        with naming(path):
            self.handle = _open_folder(path, mode)
        status = os.fstat(self.handle)
        #: The user and the group of new entries that the caller names no owner for; None: this process's own.
        self.owner = (status.st_uid, status.st_gid) if _is_foreign(status) else None
        #: Whether another user may make hard links in the directory.
        self.is_shared = self.owner is not None or bool(os.geteuid() == 0 and status.st_mode & stat.S_IWOTH)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)

    def inspect(self, name: str) -> State:
        """Return what is at a name, without following a link."""
        try:
            status = os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return State("absent")
        kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
        target = os.readlink(name, dir_fd=self.handle) if kind == "link" else ""
        return State(kind, status.st_mode & 0o7777, status.st_uid, status.st_gid, status.st_size, target)

    def create(self, name: str, mode: int) -> int:
        """Create a file and return a handle for writing. Raises FileExistsError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with naming(self.path / name):
            return os.open(name, flags, mode, dir_fd=self.handle)

    @contextlib.contextmanager
    def replacement(self, name: str) -> Iterator[str]:
        """Return a random name. What the context makes there takes the place of ``name``, or goes after an error."""
        temporary = f".{name[:200]}.{os.urandom(8).hex()}.new"
        try:
            yield temporary
            with naming(self.path / name):
                os.replace(temporary, name, src_dir_fd=self.handle, dst_dir_fd=self.handle)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self.handle)
            raise

    @contextlib.contextmanager
    def open(self) -> Iterator[int]:
        """Return a handle for changes of the directory itself. Raises PermissionError if the user may not list it."""
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.handle)
        try:
            yield handle
        finally:
            os.close(handle)

    def sync(self) -> None:
        """Flush the directory's entries to disk, if this user may read the directory."""
        with contextlib.suppress(PermissionError), self.open() as handle:
            os.fsync(handle)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors name the whole path instead of a part of it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def _open_folder(path: Path, mode: Optional[int]) -> int:
    """Return a handle of the directory, after a walk from the root directory to it."""
    absolute = path if path.is_absolute() else Path.cwd() / path
    names: List[str] = list(reversed(absolute.parts[1:]))
    handle, shown, links = os.open("/", _SEARCH), Path("/"), 0
    try:
        while names:
            name = names.pop()
            handle, target = _enter(handle, name, shown, mode)
            if target is None:
                shown = shown / name
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            names += reversed([part for part in target.split("/") if part])
            if target.startswith("/"):
                handle, former, shown = os.open("/", _SEARCH), handle, Path("/")
                os.close(former)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _enter(handle: int, name: str, shown: Path, mode: Optional[int]) -> Tuple[int, Optional[str]]:
    """
    Open the directory ``name`` of an open directory. Return the new handle and None, or the old one and where a link
    leads. ``shown`` is the path of the open directory.
    """
    above = os.fstat(handle)
    try:
        fresh = os.open(name, _SEARCH, dir_fd=handle)
    except FileNotFoundError:
        if mode is None:
            raise
        _make(handle, name, mode, above)
        fresh = os.open(name, _SEARCH, dir_fd=handle)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        return handle, _follow(handle, name, shown, above)
    try:
        _check_folder(os.fstat(fresh), shown / name)
    except UnsafePath:
        os.close(fresh)
        raise
    os.close(handle)
    return fresh, None


def _make(handle: int, name: str, mode: int, above: os.stat_result) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=handle)
        if _is_foreign(above):
            os.chown(name, above.st_uid, above.st_gid, dir_fd=handle, follow_symlinks=False)


def _follow(handle: int, name: str, shown: Path, above: os.stat_result) -> str:
    """Return where a link leads. Raises UnsafePath if another user could have made it."""
    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(shown / name))
    makers = {status.st_uid, 0 if _is_root(handle) else above.st_uid} - {0, os.geteuid()}
    if makers or _is_shared(above):
        maker = _user(makers.pop()) if makers else "another user"
        raise UnsafePath(
            f"{shown / name} is a link that {maker} could have made: name the directory that it leads to, or remove it"
        )
    return os.readlink(name, dir_fd=handle)


def _check_folder(status: os.stat_result, path: Path) -> None:
    """Raise UnsafePath for a directory of root that other users may change."""
    if os.geteuid() == 0 and status.st_uid == 0 and _is_shared(status):
        raise UnsafePath(
            f"other users may change {path} (mode {status.st_mode & 0o7777:04o}), so root does not write there:"
            f" chmod go-w {path}, or give the directory to the user of its files (chown)"
        )


def _is_shared(status: os.stat_result) -> bool:
    """
    Return whether other users may replace a directory's entries. With the sticky bit, each may replace only their own.
    """
    has_trusted_group = status.st_gid in _SYSTEM_GROUPS or status.st_gid == os.getegid()
    writers = stat.S_IWOTH | (0 if has_trusted_group else stat.S_IWGRP)
    return bool(status.st_mode & writers) and not status.st_mode & stat.S_ISVTX


def _is_foreign(status: os.stat_result) -> bool:
    """Whether root looks at a directory of another user."""
    return os.geteuid() == 0 and status.st_uid != 0


def _is_root(handle: int) -> bool:
    """Whether the handle is of the root directory, which has an unknown owner in some containers."""
    return os.path.samestat(os.fstat(handle), Path("/").stat())


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the user {uid}"
