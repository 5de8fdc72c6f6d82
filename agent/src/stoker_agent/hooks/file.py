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

import grp
import hashlib
import pwd
import string
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from stoker_agent import files
from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_text, choose_state, undo_files
from stoker_agent.hook_memory import describe_path

_STATES = ("present", "directory", "link", "absent")


class _Wanted(NamedTuple):
    path: Path
    state: str
    content: bytes
    target: str
    mode: Optional[int]
    owner: Optional[int]
    group: Optional[int]


def apply(run: HookRun) -> Result:
    """Bring the file into the state. A file that the deployment has left for another path becomes as it was before."""
    if run.is_removal:
        return undo(run)
    wanted = _wanted(run)
    changes = _compare(wanted)
    run.memory.remember("file", str(wanted.path), made=wanted.state, **describe_path(wanted.path))
    if changes:
        _write(wanted)
    changes += undo_files(run, [item for item in run.memory.list("file") if item.name != str(wanted.path)])
    for change in changes:
        print(change.diff or change.item)
    return Result.of(changes)


def check(run: HookRun) -> Result:
    """Compare the file with the state."""
    wanted = _wanted(run)
    changes = _compare(wanted)
    changes += [
        Change(item.name, diff="restored" if item.before["was"] != "absent" else "removed")
        for item in run.memory.list("file")
        if item.name != str(wanted.path) and not run.memory.is_used("file", item.name)
    ]
    for change in changes:
        print(change.diff or change.item)
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Restore what was at the path before this deployment."""
    return Result.of(undo_files(run, run.memory.list("file")))


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
    name, present = str(wanted.path), files.inspect(wanted.path)
    if wanted.state == "absent":
        return [] if present.kind == "absent" else [Change(name, diff="removed")]
    if wanted.state == "link":
        is_same = (present.kind, present.target) == ("link", wanted.target)
        return [] if is_same else [Change(name, diff=f"link to {wanted.target}")]
    if wanted.state == "directory" and present.kind != "directory":
        return [Change(name, diff="created")]
    content = wanted.content if wanted.state == "present" else None
    differences = files.compare(wanted.path, content, wanted.mode, wanted.owner, wanted.group)
    return [Change(name, diff=difference) for difference in differences]


def _write(wanted: _Wanted) -> None:
    path = wanted.path
    if wanted.state == "absent":
        files.remove(path)
    elif wanted.state == "link":
        _make_room(path)
        files.link(path, wanted.target)
    elif wanted.state == "directory":
        files.make_folder(path, wanted.mode, wanted.owner, wanted.group)
    else:
        present = files.inspect(path)
        if present.kind == "directory":
            raise HookError(f"{path} is a directory: remove it first")
        mode = (present.mode or 0o644) if wanted.mode is None else wanted.mode
        files.write(path, wanted.content, mode, uid=wanted.owner, gid=wanted.group, folder_mode=0o755)


def _make_room(path: Path) -> None:
    """Remove a directory that is in the place of a file or a link."""
    if files.inspect(path).kind == "directory":
        files.remove(path)
