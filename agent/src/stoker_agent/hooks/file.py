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
from typing import Any, Dict, Optional

from stoker_agent.hook_contract import HookError, HookRun, as_text, choose_state
from stoker_agent.steps import Steps, by_steps

_STATES = ("present", "directory", "link", "absent")


@by_steps
def apply(run: HookRun, steps: Steps) -> None:
    """Bring the file into the state. A file that the deployment has left for another path becomes as it was before."""
    settings = run.settings("path")
    path = Path(str(settings["path"]))
    if not path.is_absolute() or path == Path("/"):
        raise HookError(f"path must be absolute, not {settings['path']!r}")
    state = choose_state(settings, _STATES)
    mode = settings.get("mode", {"present": "0644", "directory": "0755"}.get(state))
    rights = (
        None if mode is None else _octal(mode),
        _id(settings.get("owner"), "owner"),
        _id(settings.get("group"), "group"),
    )
    if state == "absent":
        steps.absent(path, recursive=True)
    elif state == "link":
        if not settings.get("target"):
            raise HookError("a link needs the setting 'target'")
        steps.link(path, str(settings["target"]), recursive=True)
    elif state == "directory":
        steps.directory(path, *rights, owns_content=True)
    else:
        steps.file(path, _content(run, settings), *rights, shows_new=True)
    steps.undo(keep=[str(path)])


check = preview = undo = apply


def _content(run: HookRun, settings: Dict[str, Any]) -> bytes:
    text, checksum = as_text(settings.get("content")), settings.get("checksum")
    if settings.get("template") is not None:
        values = {name: as_text(value) for name, value in run.inputs.items()}
        try:
            text = string.Template(str(settings["template"])).substitute(values)
        except (KeyError, ValueError) as error:
            raise HookError(f"the template needs the input {error}") from None
    content = text.encode("utf-8", "surrogateescape")
    if checksum and hashlib.sha256(content).hexdigest() != str(checksum).rpartition(":")[2].lower():
        raise HookError(f"the content of {settings['path']} does not have the SHA-256 {checksum}")
    return content


def _octal(value: Any) -> int:
    try:
        mode = int(str(value), 8)
    except ValueError:
        mode = -1
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
