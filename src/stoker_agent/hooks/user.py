"""
Hook of the group ``user``: an account of this server with its groups and SSH keys.

Settings, in the config's map or as inputs:

- ``name``; ``state``: ``present`` (default) or ``absent``;
- ``uid``, ``home``, ``shell``, ``comment``, ``system`` (true for an account of a service);
- ``groups``: further groups, which must exist; ``ssh_keys``: the lines of ``authorized_keys``.

Undo removes the account if this deployment created it; the home directory stays.
"""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from typing import Any, Dict, List, Optional

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_flag, as_list, write_file


def apply(run: HookRun) -> Result:
    """Create, change or remove the account."""
    if run.is_removal:
        return undo(run)
    settings = _settings(run)
    changes = _compare(settings)
    if not changes:
        return Result(changed=False)
    name = settings["name"]
    account = _find(name)
    if settings["state"] == "absent":
        _call(run, ["userdel", name])
        return Result(changed=True, changes=changes)
    flags = _flags(settings)
    if account is None:
        run.memory.store({"name": name})
        is_system = as_flag(settings.get("system", False), "system")
        _call(run, ["useradd", *(["--system"] if is_system else ["--create-home"]), *flags, name])
    elif flags:
        _call(run, ["usermod", *(["--append"] if settings.get("groups") else []), *flags, name])
    if settings.get("ssh_keys") is not None:
        _write_keys(name, as_list(settings["ssh_keys"], "ssh_keys"))
    return Result(changed=True, changes=changes)


def check(run: HookRun) -> Result:
    """Compare the account with the settings."""
    changes = _compare(_settings(run))
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Remove the account that this deployment created."""
    name = run.memory.load().get("name")
    if name is None or _find(name) is None:
        return Result(changed=False)
    _call(run, ["userdel", name])
    run.memory.clear()
    return Result(changed=True, changes=[Change(name, diff="removed")])


def _settings(run: HookRun) -> Dict[str, Any]:
    settings = run.settings("name")
    name = str(settings["name"])
    if not name or name.startswith("-") or set(name) & set(":/\n ,"):
        raise HookError(f"{name!r} is not the name of an account")
    state = str(settings.get("state") or "present")
    if state not in ("present", "absent"):
        raise HookError(f"state must be present or absent, not {state!r}")
    return {**settings, "name": name, "state": state}


def _find(name: str) -> Optional[pwd.struct_passwd]:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _flags(settings: Dict[str, Any]) -> List[str]:
    flags = []
    for key in ("uid", "home", "shell", "comment"):
        if settings.get(key) not in (None, ""):
            flags += [f"--{key}", str(settings[key])]
    if settings.get("groups"):
        flags += ["--groups", ",".join(as_list(settings["groups"], "groups"))]
    return flags


def _compare(settings: Dict[str, Any]) -> List[Change]:
    name = settings["name"]
    account = _find(name)
    if settings["state"] == "absent":
        return [] if account is None else [Change(name, diff="removed")]
    if account is None:
        return [Change(name, diff="created")]
    present = {"uid": account.pw_uid, "home": account.pw_dir, "shell": account.pw_shell, "comment": account.pw_gecos}
    changes = [
        Change(name, diff=f"{key} {value} → {settings[key]}")
        for key, value in present.items()
        if settings.get(key) not in (None, "") and str(settings[key]) != str(value)
    ]
    for group in as_list(settings.get("groups") or [], "groups"):
        try:
            is_member = name in grp.getgrnam(group).gr_mem or grp.getgrnam(group).gr_gid == account.pw_gid
        except KeyError:
            raise HookError(f"this server has no group {group!r}") from None
        if not is_member:
            changes.append(Change(name, diff=f"member of {group}"))
    if settings.get("ssh_keys") is not None:
        keys = Path(account.pw_dir) / ".ssh" / "authorized_keys"
        text = "".join(f"{key}\n" for key in as_list(settings["ssh_keys"], "ssh_keys"))
        if not keys.is_file() or keys.read_text(errors="replace") != text:
            changes.append(Change(str(keys)))
    return changes


def _write_keys(name: str, keys: List[str]) -> None:
    account = pwd.getpwnam(name)
    folder = Path(account.pw_dir) / ".ssh"
    if folder.is_symlink():
        raise HookError(f"{folder} is a link")  # its owner could direct the write of root elsewhere
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = write_file(folder / ".authorized_keys.new", "".join(f"{key}\n" for key in keys))
    for path in (folder, file):
        os.chown(str(path), account.pw_uid, account.pw_gid)
    file.replace(folder / "authorized_keys")


def _call(run: HookRun, argv: List[str]) -> None:
    code = run.call(argv)
    if code:
        raise HookError(f"{argv[0]}: exit {code}", code)
