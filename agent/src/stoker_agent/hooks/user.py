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
import pwd
from pathlib import Path
from typing import Any, Dict, List, Optional

from stoker_agent import files
from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_flag, as_list, read_text

NEEDS_ROOT = True


def apply(run: HookRun) -> Result:
    """Create, change or remove the account."""
    if run.is_removal:
        return undo(run)
    settings = _settings(run)
    changes = _compare(settings)
    name = settings["name"]
    account = _find(name)
    if settings["state"] == "present":
        run.memory.remember("user", name, was="absent" if account is None else "present")
    if not changes:
        return Result(changed=False)
    if settings["state"] == "absent":
        _call(run, ["userdel", name])
        return Result(changed=True, changes=changes)
    flags = _flags(settings)
    if account is None:
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
    """Remove the accounts that this deployment created."""
    changes = []
    for item in run.memory.list("user"):
        if not run.memory.release(item):
            continue
        if item.before["was"] == "absent" and _find(item.name) is not None:
            _call(run, ["userdel", item.name])
            changes.append(Change(item.name, diff="removed"))
        run.memory.forget(item)
    return Result.of(changes)


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
        if read_text(keys) != text:
            changes.append(Change(str(keys)))
    return changes


def _write_keys(name: str, keys: List[str]) -> None:
    account = pwd.getpwnam(name)
    folder = Path(account.pw_dir) / ".ssh"
    if files.inspect(folder).kind != "directory":
        files.make_folder(folder, 0o700, account.pw_uid, account.pw_gid)
    text = "".join(f"{key}\n" for key in keys)
    files.write(folder / "authorized_keys", text.encode(), uid=account.pw_uid, gid=account.pw_gid)


def _call(run: HookRun, argv: List[str]) -> None:
    code = run.call(argv)
    if code:
        raise HookError(f"{argv[0]}: exit {code}", code)
