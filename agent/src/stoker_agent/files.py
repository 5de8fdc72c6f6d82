"""
Durable file writes, and reads of files that another user wrote.

Everything that root writes on a server goes through this module: the files of the agent, of its hooks and of the
catalog's steps. Other users of the machine cannot redirect the access by a link (``folders``). A new file has a
random name, and its rights, before it takes the place of the old one.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, List, Optional

from stoker_agent.folders import Folder, State, UnsafePath, naming


def write(
    path: Path,
    data: bytes,
    mode: int = 0o600,
    *,
    uid: Optional[int] = None,
    gid: Optional[int] = None,
    folder_mode: Optional[int] = None,
    sync: bool = True,
    check: Callable[[Path], None] = lambda _: None,
) -> None:
    """
    Replace the file atomically: a reader sees the old content or the new one.

    Without ``uid`` and ``gid``, a present file keeps its owner. With ``folder_mode``, missing directories are created.
    ``sync`` flushes file and directory to disk. ``check`` is called with the path of the new file before it takes the
    place of the old one, and raises an error to prevent that. Raises UnsafePath and OSError; the old content remains.
    """
    with Folder(path.parent, folder_mode) as folder:
        present = folder.inspect(path.name)
        if os.geteuid() == 0:
            own = (present.uid, present.gid) if present.kind == "file" else folder.owner or (0, 0)
            uid, gid = own[0] if uid is None else uid, own[1] if gid is None else gid
        with folder.replacement(path.name) as temporary:
            with os.fdopen(folder.create(temporary, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                _set_rights(file.fileno(), mode, uid, gid)
                if sync:
                    os.fsync(file.fileno())
            check(path.with_name(temporary))
        if sync:
            folder.sync()


def write_json(path: Path, value: Any, *, indent: Optional[int] = None, sync: bool = True) -> None:
    """Replace the file by a JSON text, for the owner only. See ``write``."""
    write(path, json.dumps(value, indent=indent, sort_keys=True).encode(), sync=sync)


def read_map(path: Path) -> Dict[str, Any]:
    """Return the JSON map in a file of the agent, or an empty one if there is none, or if it cannot be read."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def create(path: Path, mode: int = 0o600) -> BinaryIO:
    """Create a file, with the directory that it needs, and open it. Raises FileExistsError, UnsafePath and OSError."""
    with Folder(path.parent, 0o755) as folder:
        return os.fdopen(folder.create(path.name, mode), "wb")


def append(path: Path, data: bytes) -> None:
    """Append to the file and flush it to disk. Raises OSError; a part of the data may then be in the file."""
    handle = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def inspect(path: Path) -> State:
    """Return what is at a path. The path's last part is no followed link. Raises UnsafePath and OSError."""
    try:
        with Folder(path.parent) as folder:
            return folder.inspect(path.name)
    except (FileNotFoundError, NotADirectoryError):
        return State("absent")


def read(path: Path) -> Optional[bytes]:
    """Return the content of a regular file, or None if there is none at the path. Raises UnsafePath and OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with Folder(path.parent) as folder:
            is_shared, handle = folder.is_shared, os.open(path.name, flags, dir_fd=folder.handle)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        if is_shared and status.st_nlink > 1:
            raise UnsafePath(f"{path} is a hard link that another user could have made: remove it, then try again")
        return file.read()


def compare(
    path: Path, content: Optional[bytes], mode: Optional[int], uid: Optional[int], gid: Optional[int]
) -> List[str]:
    """Return what distinguishes a file or directory from the wanted one, as texts. None stands for any value."""
    present = inspect(path)
    differences = []
    if content is not None:
        before = read(path)
        if before != content:
            differences.append(_diff(path, before or b"", content))
        if before is None:
            return differences
    if mode not in (None, present.mode):
        differences.append(f"mode {present.mode:04o} → {mode:04o}")
    if uid not in (None, present.uid):
        differences.append(f"owner {present.uid} → {uid}")
    if gid not in (None, present.gid):
        differences.append(f"group {present.gid} → {gid}")
    return differences


def _diff(path: Path, before: bytes, content: bytes) -> str:
    if b"\0" in before + content:
        return f"binary content of {len(content)} bytes"
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, content))
    return "\n".join(difflib.unified_diff(old, new, str(path), str(path), lineterm=""))


def make_folder(path: Path, mode: Optional[int], uid: Optional[int], gid: Optional[int]) -> None:
    """
    Create a directory, and set its mode and its owner, each unless it is None. Raises UnsafePath and OSError.
    """
    with Folder(path.parent, 0o755) as above:
        if above.inspect(path.name).kind in ("file", "link"):
            os.unlink(path.name, dir_fd=above.handle)
    with Folder(path, 0o755) as folder, folder.open() as handle:
        _set_rights(handle, mode, uid, gid)


def link(path: Path, target: str) -> None:
    """Make a symbolic link, in the place of a file or a link. Raises UnsafePath and OSError."""
    with Folder(path.parent, 0o755) as folder, folder.replacement(path.name) as temporary:
        os.symlink(target, temporary, dir_fd=folder.handle)
        if folder.owner is not None:
            os.chown(temporary, *folder.owner, dir_fd=folder.handle, follow_symlinks=False)


def remove(path: Path) -> None:
    """Remove a file, a link or a directory with everything in it. Raises UnsafePath and OSError."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), Folder(path.parent) as folder:
        if folder.inspect(path.name).kind == "directory":
            shutil.rmtree(f"/proc/self/fd/{folder.handle}/{path.name}")
        else:
            with naming(path):
                os.unlink(path.name, dir_fd=folder.handle)


def change_owner(top: Path, uid: int, gid: int, former: Optional[int] = None) -> None:
    """
    Change the owner of a directory and of everything in it; with ``former``, of what belongs to that user only.

    Links are not followed, also not one that a user of the directory makes meanwhile. Raises OSError.
    """
    if former in (None, top.lstat().st_uid):
        os.chown(str(top), uid, gid, follow_symlinks=False)
    for _, folders, names, handle in os.fwalk(str(top)):
        for name in (*folders, *names):
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if former in (None, status.st_uid):
                os.chown(name, uid, gid, dir_fd=handle, follow_symlinks=False)


def sync_folder(path: Path) -> None:
    """Flush the directory's entries to disk."""
    with Folder(path) as folder:
        folder.sync()


def remove_tree(folder: Path) -> None:
    """Remove a directory with everything in it. What cannot be removed stays."""
    shutil.rmtree(str(folder), ignore_errors=True)


def open_trusted(path: Path) -> BinaryIO:
    """
    Open a file for reading. In a directory of another user, it must be a regular file of that user.

    Otherwise that user could name any file of this machine by a link, and the agent would report its content. Raises
    OSError.
    """
    owner = path.parent.stat().st_uid
    is_own = owner == os.geteuid()
    handle = os.open(str(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if is_own else os.O_NOFOLLOW))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or not (is_own or status.st_uid == owner):
        os.close(handle)
        raise OSError(errno.EPERM, "not a regular file of the run's user", str(path))
    return os.fdopen(handle, "rb")


def _set_rights(handle: int, mode: Optional[int], uid: Optional[int], gid: Optional[int]) -> None:
    if uid is not None or gid is not None:
        os.fchown(handle, -1 if uid is None else uid, -1 if gid is None else gid)
    if mode is not None:
        os.fchmod(handle, mode)  # after the owner, whose change clears the set-id bits
