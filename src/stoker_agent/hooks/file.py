"""
Hook of the group ``file``: a file, directory or link with its content, mode and owner.

Settings, in the config's map or as inputs:

- ``path``: absolute path;
- ``state``: ``present`` (default), ``directory``, ``link`` or ``absent``;
- ``content``: the text; or ``template``: a text in which ``${name}`` is the value of an input (``$$`` is a dollar);
- ``target``: where a link points;
- ``mode``: octal, as a text (default 0644, for directories 0755); ``owner`` and ``group``: names or numbers;
- ``checksum``: SHA-256 that the content must have.

Undo restores the content that the deployment replaced, or removes what it created.
"""

from __future__ import annotations

import base64
import difflib
import grp
import hashlib
import os
import pwd
import shutil
import string
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_text, choose_state

_STATES = ("present", "directory", "link", "absent")
#: Largest file whose former content is kept for undo.
_LONGEST_KEPT = 1024 * 1024


class _Wanted(NamedTuple):
    path: Path
    state: str
    content: bytes
    target: str
    mode: Optional[int]
    owner: Optional[int]
    group: Optional[int]


def apply(run: HookRun) -> Result:
    """Bring the file into the state."""
    if run.is_removal:
        return undo(run)
    wanted = _wanted(run)
    changes = _compare(wanted)
    if changes:
        _remember(run, wanted)
        _write(wanted)
        for change in changes:
            print(change.diff or change.item)
    return Result.of(changes)


def check(run: HookRun) -> Result:
    """Compare the file with the state."""
    changes = _compare(_wanted(run))
    for change in changes:
        print(change.diff or change.item)
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Restore what was at the path before this deployment."""
    before = run.memory.load()
    if not before:
        return Result(changed=False)
    path = Path(before["path"])
    _remove(path)
    if before["content"] is not None:
        _replace(path, base64.b64decode(before["content"]))
        path.chmod(before["mode"])
        os.chown(str(path), before["owner"], before["group"])
    run.memory.clear()
    return Result(changed=True, changes=[Change(str(path), diff="restored" if before["content"] else "removed")])


def _wanted(run: HookRun) -> _Wanted:
    settings = run.settings("path")
    path = Path(str(settings["path"]))
    if not path.is_absolute() or path == Path("/"):
        raise HookError(f"path must be absolute, not {settings['path']!r}")
    state = choose_state(settings, _STATES)
    if state == "link" and not settings.get("target"):
        raise HookError("a link needs the setting 'target'")
    content = _content(run, settings) if state == "present" else b""
    checksum = settings.get("checksum")
    if checksum and hashlib.sha256(content).hexdigest() != str(checksum).rpartition(":")[2].lower():
        raise HookError(f"the content of {path} does not have the SHA-256 {checksum}")
    default = {"present": "0644", "directory": "0755"}.get(state)
    mode = settings.get("mode", default)
    return _Wanted(
        path,
        state,
        content,
        str(settings.get("target") or ""),
        None if mode is None else _octal(mode),
        _id(settings.get("owner"), "owner"),
        _id(settings.get("group"), "group"),
    )


def _content(run: HookRun, settings: Dict[str, Any]) -> bytes:
    template = settings.get("template")
    if template is None:
        return as_text(settings.get("content")).encode("utf-8", "surrogateescape")
    values = {name: as_text(value) for name, value in run.inputs.items()}
    try:
        return string.Template(str(template)).substitute(values).encode("utf-8", "surrogateescape")
    except (KeyError, ValueError) as error:
        raise HookError(f"the template needs the input {error}") from None


def _octal(value: Any) -> int:
    try:
        mode = int(str(value), 8)
    except ValueError:
        raise HookError(f"mode must be octal, such as '0644', not {value!r}") from None
    if not 0 <= mode <= 0o7777:
        raise HookError(f"mode must be octal, such as '0644', not {value!r}")
    return mode


def _id(value: Any, what: str) -> Optional[int]:
    """Return the number of a user or a group, given as a name or a number."""
    if value in (None, ""):
        return None
    if str(value).isdecimal():
        return int(value)
    try:
        return pwd.getpwnam(str(value)).pw_uid if what == "owner" else grp.getgrnam(str(value)).gr_gid
    except KeyError:
        raise HookError(f"{what}: this server has no {'user' if what == 'owner' else 'group'} {value!r}") from None


def _compare(wanted: _Wanted) -> List[Change]:
    path = wanted.path
    name = str(path)
    if wanted.state == "absent":
        return [Change(name, diff="removed")] if os.path.lexists(name) else []
    if wanted.state == "link":
        is_same = path.is_symlink() and os.readlink(name) == wanted.target  # noqa: PTH115 — Python 3.8
        return [] if is_same else [Change(name, diff=f"link to {wanted.target}")]
    changes = []
    if wanted.state == "directory":
        if path.is_symlink() or not path.is_dir():
            return [Change(name, diff="created")]
    elif path.is_symlink() or not path.is_file() or path.read_bytes() != wanted.content:
        changes.append(Change(name, diff=_diff(path, wanted.content)))
        if not path.is_file():
            return changes
    info = path.stat()
    if wanted.mode is not None and info.st_mode & 0o7777 != wanted.mode:
        changes.append(Change(name, diff=f"mode {info.st_mode & 0o7777:04o} → {wanted.mode:04o}"))
    if wanted.owner not in (None, info.st_uid):
        changes.append(Change(name, diff=f"owner {info.st_uid} → {wanted.owner}"))
    if wanted.group not in (None, info.st_gid):
        changes.append(Change(name, diff=f"group {info.st_gid} → {wanted.group}"))
    return changes


def _diff(path: Path, content: bytes) -> str:
    before = path.read_bytes() if path.is_file() else b""
    if b"\0" in before + content:
        return f"binary content of {len(content)} bytes"
    lines = difflib.unified_diff(
        before.decode("utf-8", "replace").splitlines(),
        content.decode("utf-8", "replace").splitlines(),
        str(path),
        str(path),
        lineterm="",
    )
    return "\n".join(lines)


def _write(wanted: _Wanted) -> None:
    path = wanted.path
    if wanted.state == "absent":
        _remove(path)
        return
    if wanted.state == "link":
        _remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(wanted.target)
        return
    if wanted.state == "directory":
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()
        path.mkdir(parents=True, exist_ok=True)
    else:
        if path.is_dir() and not path.is_symlink():
            raise HookError(f"{path} is a directory: remove it first")
        _replace(path, wanted.content, wanted.mode, wanted.owner, wanted.group)
        return
    _set_rights(path, wanted.mode, wanted.owner, wanted.group)


def _replace(
    path: Path, content: bytes, mode: Optional[int] = None, owner: Optional[int] = None, group: Optional[int] = None
) -> None:
    """Replace the file atomically: a reader sees the old content or the new one, with the new one's rights."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.stoker-new")
    handle = os.open(str(fresh), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if path.is_file() and not path.is_symlink():
        info = path.stat()
        owner, group = info.st_uid if owner is None else owner, info.st_gid if group is None else group
    _set_rights(fresh, mode, owner, group)
    fresh.replace(path)


def _set_rights(path: Path, mode: Optional[int], owner: Optional[int], group: Optional[int]) -> None:
    if owner is not None or group is not None:
        os.chown(str(path), -1 if owner is None else owner, -1 if group is None else group)
    if mode is not None:
        path.chmod(mode)  # after chown, which clears the set-id bits


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(str(path))
    elif os.path.lexists(str(path)):
        path.unlink()


def _remember(run: HookRun, wanted: _Wanted) -> None:
    """Record what was at the path before this deployment changed it for the first time."""
    if run.memory.load().get("path") == str(wanted.path):
        return
    path = wanted.path
    before: Dict[str, Any] = {"path": str(path), "content": None}
    if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LONGEST_KEPT:
        info = path.stat()
        before["content"] = base64.b64encode(path.read_bytes()).decode()
        before.update(mode=info.st_mode & 0o7777, owner=info.st_uid, group=info.st_gid)
    run.memory.store(before)
