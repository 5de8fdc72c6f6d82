"""The unprivileged mode: the agent's own user, its files, and what that user may run as root."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path
from typing import Iterable, List, Sequence

from stoker_agent import files
from stoker_agent.config import Paths, Unusable
from stoker_agent.service import SUDOERS

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
#: The PATH of root may lack the directories of visudo.
_PROGRAMS = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin"
#: In sudoers, these characters have a meaning, or separate commands.
_SPECIAL = re.compile(r"[\n,:=\\!\"#]")


def create(name: str) -> None:
    """Create the system user, if it does not exist. Raises Unusable."""
    if not _NAME.fullmatch(name):
        raise Unusable(f"{name!r} is not the name of a user")
    try:
        pwd.getpwnam(name)
    except KeyError:
        command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise Unusable(f"there is no useradd here: create the system user {name}, then run this again") from None
        if done.returncode:
            raise Unusable(f"cannot create the user {name}: {done.stderr.strip()}") from None


def change_owner(name: str, paths: Paths, program: Path, *, with_program: bool) -> None:
    """
    Make the user the owner of the agent's files, and of the program if ``with_program``.

    A program that sudo may start must stay root's, because its owner could replace it.
    """
    entry = pwd.getpwnam(name)
    paths.make()
    for top in (paths.config.parent, paths.state, paths.logs):
        files.change_owner(top, entry.pw_uid, entry.pw_gid)
    owner = (entry.pw_uid, entry.pw_gid) if with_program else (0, 0)
    for path in (program.parent, program):
        os.chown(str(path), *owner, follow_symlinks=False)


def restore_root(paths: Paths, program: Path, user: str) -> None:
    """Make root the owner of what belongs to the agent's user: its files and the program. Removes the rules of sudo."""
    SUDOERS.unlink(missing_ok=True)
    try:
        id = pwd.getpwnam(user).pw_uid
    except KeyError:
        raise Unusable(f"the agent runs as {user}, and there is no such user: create it, then run this again") from None
    for top in (paths.config.parent, paths.state, paths.logs, program.parent):
        files.change_owner(top, 0, 0, former=id)  # files of runs that had other users stay theirs


def allow(name: str, commands: Sequence[str], file: Path = SUDOERS) -> None:
    """Let the user run these commands as root, without a password, and no others. Raises Unusable."""
    if not commands:
        file.unlink(missing_ok=True)
        return
    text = sudoers(name, commands)
    if not file.parent.is_dir():
        raise Unusable(f"{file.parent} does not exist: install sudo, then run this again")
    checker = shutil.which("visudo", path=_PROGRAMS)
    if checker is None:
        raise Unusable("there is no visudo to check the rules for sudo: install sudo, then run this again")
    with files.stage(file, text.encode(), 0o440) as staged:  # sudo ignores names with a dot
        done = subprocess.run([checker, "-c", "-f", str(staged.path)], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[0]
            raise Unusable(f"sudo does not accept the rules for {', '.join(commands)}: {reason}")
        staged.replace()


def sudoers(name: str, commands: Iterable[str]) -> str:
    """Return the rules for sudo. Each command is an absolute path, with arguments or without. Raises Unusable."""
    lines: List[str] = ["# Written by `stoker-agent install --user`. Commands that runs may start with `sudo -n`."]
    for command in commands:
        if not command.startswith("/") or _SPECIAL.search(command):
            raise Unusable(f"{command!r} is not a command for sudo: give its absolute path, and plain arguments")
        lines.append(f"{name} ALL=(root) NOPASSWD: {command}")
    return "\n".join(lines) + "\n"
