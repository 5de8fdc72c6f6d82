"""
Hook of the group ``user``: an account of this server with its groups and SSH keys.

Settings, in the config's map or as inputs:

- ``name``; ``state``: ``present`` (default) or ``absent``;
- ``uid``, ``home``, ``shell``, ``comment``, ``system`` (true for an account of a service);
- ``groups``: further groups, which must exist; ``ssh_keys``: the lines of ``authorized_keys``.

Undo removes the account if this deployment created it, and restores the SSH keys of one that was there before. The home
directory stays.
"""

from __future__ import annotations

import grp
from pathlib import Path
from pwd import struct_passwd
from typing import Any, Dict, List

from stoker_agent import files
from stoker_agent.hook_contract import HookError, HookRun, as_flag, as_list, choose_state
from stoker_agent.reversible import find_account
from stoker_agent.steps import Steps, by_steps

NEEDS_ROOT = True


@by_steps
def apply(run: HookRun, steps: Steps) -> None:
    """Create, change or remove the account."""
    settings = run.settings("name")
    name = str(settings["name"])
    if not name or name.startswith("-") or set(name) & set(":/\n ,"):
        raise HookError(f"{name!r} is not the name of an account")
    if choose_state(settings, ("present", "absent")) == "absent":
        if find_account(name) is not None:
            steps.command(name, "userdel", name, diff="removed")
        return
    groups = as_list(settings.get("groups") or [], "groups")
    wanted = {key: settings[key] for key in ("uid", "home", "shell", "comment") if settings.get(key) not in (None, "")}
    account = steps.account(name)
    if account is None:
        flags = [word for key, value in wanted.items() for word in (f"--{key}", str(value))]
        flags += ["--groups", ",".join(groups)] if groups else []
        is_system = as_flag(settings.get("system", False), "system")
        kind = "--system" if is_system else "--create-home"
        steps.command(name, "useradd", kind, *flags, name, diff="created")
        account = find_account(name)
    else:
        _change(steps, account, wanted, groups)
    if settings.get("ssh_keys") is not None and account is not None:
        _write_keys(steps, account, as_list(settings["ssh_keys"], "ssh_keys"))


check = preview = undo = apply


def _change(steps: Steps, account: struct_passwd, wanted: Dict[str, Any], groups: List[str]) -> None:
    name = account.pw_name
    present = {"uid": account.pw_uid, "home": account.pw_dir, "shell": account.pw_shell, "comment": account.pw_gecos}
    for key, value in wanted.items():
        if str(value) != str(present[key]):
            steps.command(name, "usermod", f"--{key}", str(value), name, diff=f"{key} {present[key]} → {value}")
    for group in groups:
        if not _is_member(account, group):
            steps.command(name, "usermod", "--append", "--groups", group, name, diff=f"member of {group}")


def _is_member(account: struct_passwd, group: str) -> bool:
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        raise HookError(f"this server has no group {group!r}") from None
    return account.pw_name in entry.gr_mem or entry.gr_gid == account.pw_gid


def _write_keys(steps: Steps, account: struct_passwd, keys: List[str]) -> None:
    folder = Path(account.pw_dir) / ".ssh"
    if files.inspect(folder).kind == "absent":
        steps.directory(folder, 0o700, account.pw_uid, account.pw_gid)
    text = "".join(f"{key}\n" for key in keys)
    steps.file(folder / "authorized_keys", text, 0o600, account.pw_uid, account.pw_gid)
