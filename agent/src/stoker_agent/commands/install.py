"""``stoker-agent install``: the agent as a service, of root or of its own user, or in a golden image."""

from __future__ import annotations

import argparse
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterable, List, Optional, Sequence

from stoker_agent import files, proxy, service
from stoker_agent.config import Paths, Unusable
from stoker_agent.enrollment import Invitation, keep_invitation
from stoker_agent.self_update import find_program
from stoker_agent.service import LINK, PROGRAM, SUDOERS, UNIT, systemd_unit

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
#: The PATH of root may lack the directories of visudo.
_PROGRAMS = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin"
#: In sudoers, these characters have a meaning, or separate commands.
_SPECIAL = re.compile(r"[\n,:=\\!\"#]")
#: Where an image has the certificates that verify Stoker's URL.
_CA_FILE = Path("/etc/stoker-agent/ca.pem")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--user", metavar="NAME", help="run the agent as this system user, which is created; root: as root again"
    )
    parser.add_argument(
        "--sudo",
        action="append",
        default=[],
        metavar="COMMAND",
        help="with --user: a command with an absolute path that runs may start as root by `sudo -n`; repeatable",
    )
    parser.add_argument("--image-root", type=Path, metavar="DIR", help="install into an image, for its first boot")
    parser.add_argument("--url", help="with --image-root: Stoker's URL")
    parser.add_argument("--token-file", type=Path, help="with --image-root: the token that the first boot redeems")
    parser.add_argument("--ca-file", type=Path, help="with --image-root: certificates that verify the URL")
    parser.add_argument("--proxy", metavar="URL", help="with --image-root: the HTTP proxy, http://HOST:PORT")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Install. Raises Unusable."""
    if options.image_root is not None:
        if not options.url or not options.token_file:
            raise Unusable("--image-root needs --url and --token-file")
        if options.proxy:
            proxy.parse(options.proxy)
        program, ca_file = _own_program(), options.ca_file
        _install_into_image(options.image_root, program, options.url, options.token_file, ca_file, options.proxy)
        print(f"installed below {options.image_root}: the first boot enrolls the machine at {options.url}")
        return 0
    if options.sudo and options.user in (None, service.ROOT):
        raise Unusable("--sudo needs --user, with another user than root: an agent of root needs no sudo")
    before = service.find_user()
    if options.user and (os.geteuid() != 0 or options.root):
        raise Unusable("--user needs root, and the system's directories")
    if options.user == service.ROOT:
        if before is not None:
            _restore_root(paths, _own_program(), before)
    elif options.user:
        _sudoers(options.user, options.sudo)  # refuses bad commands before anything changes
        _create_user(options.user)
        _change_owner(options.user, paths, _own_program(), with_program=not options.sudo)
        _allow(options.user, options.sudo)
    done = service.install(paths, options.root, user=options.user, has_sudo=bool(options.sudo))
    print(f"service   {done}")
    if options.user == service.ROOT and before is not None:
        print(f"user      root; the user {before} is no longer needed: userdel {before}")
    return 0


def _create_user(name: str) -> None:
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


def _change_owner(name: str, paths: Paths, program: Path, *, with_program: bool) -> None:
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


def _restore_root(paths: Paths, program: Path, user: str) -> None:
    """Make root the owner of what belongs to the agent's user: its files and the program. Removes the rules of sudo."""
    SUDOERS.unlink(missing_ok=True)
    try:
        id = pwd.getpwnam(user).pw_uid
    except KeyError:
        raise Unusable(f"the agent runs as {user}, and there is no such user: create it, then run this again") from None
    for top in (paths.config.parent, paths.state, paths.logs, program.parent):
        files.change_owner(top, 0, 0, former=id)  # files of runs that had other users stay theirs


def _allow(name: str, commands: Sequence[str]) -> None:
    """Let the user run these commands as root, without a password, and no others. Raises Unusable."""
    if not commands:
        SUDOERS.unlink(missing_ok=True)
        return
    text = _sudoers(name, commands)
    if not SUDOERS.parent.is_dir():
        raise Unusable(f"{SUDOERS.parent} does not exist: install sudo, then run this again")
    checker = shutil.which("visudo", path=_PROGRAMS)
    if checker is None:
        raise Unusable("there is no visudo to check the rules for sudo: install sudo, then run this again")

    def check(staged: Path) -> None:
        done = subprocess.run([checker, "-c", "-f", str(staged)], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[0]
            raise Unusable(f"sudo does not accept the rules for {', '.join(commands)}: {reason}")

    files.write(SUDOERS, text.encode(), 0o440, check=check)  # sudo ignores names with a dot, as that of the new file


def _sudoers(name: str, commands: Iterable[str]) -> str:
    """Return the rules for sudo. Each command is an absolute path, with arguments or without. Raises Unusable."""
    lines: List[str] = ["# Written by `stoker-agent install --user`. Commands that runs may start with `sudo -n`."]
    for command in commands:
        if not command.startswith("/") or _SPECIAL.search(command):
            raise Unusable(f"{command!r} is not a command for sudo: give its absolute path, and plain arguments")
        lines.append(f"{name} ALL=(root) NOPASSWD: {command}")
    return "\n".join(lines) + "\n"


def _install_into_image(
    top: Path, program: Path, url: str, token_file: Path, ca_file: Optional[Path], proxy_url: Optional[str] = None
) -> None:
    """
    Install the agent below ``top``, for the first boot. Repeatable.

    Raises Unusable if the image has an identity already, which all machines would share.
    """

    def within(path: Path) -> Path:
        return top / path.relative_to("/")

    paths = Paths(*map(within, Paths.of(None)))
    if paths.config.exists():
        raise Unusable(f"{paths.config} is there: this image is a server already, whose key all would share")
    token = token_file.read_text().strip()
    if not token:
        raise Unusable(f"{token_file} holds no token")
    keep_invitation(paths, Invitation(url.rstrip("/"), token, str(_CA_FILE) if ca_file else None, proxy_url))
    files.write(within(PROGRAM), program.read_bytes(), 0o755, folder_mode=0o755)
    unit = systemd_unit(["/usr/bin/env", "python3", str(PROGRAM), "run"])
    files.write(within(UNIT), unit.encode(), 0o644, folder_mode=0o755)
    wants = UNIT.parent / "multi-user.target.wants" / UNIT.name
    for path, target in ((wants, UNIT), (LINK, PROGRAM)):
        if files.inspect(within(path)).kind == "absent":
            files.link(within(path), str(target))
    if ca_file is not None:
        files.write(within(_CA_FILE), ca_file.read_bytes())


def _own_program() -> Path:
    """Return the file of this program. Raises Unusable if it runs from its sources."""
    path = find_program()
    if path is None:
        raise Unusable(f"build the program first: {sys.executable} -m stoker_agent build stoker-agent.pyz")
    return path
