"""``stoker-agent install``: the agent as a service, of root or of its own user, or in an image."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from stoker_agent import account, image, proxy, service
from stoker_agent.config import Paths, Unusable


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
        program, ca_file = image.own_program(), options.ca_file
        image.install(options.image_root, program, options.url, options.token_file, ca_file, options.proxy)
        print(f"installed below {options.image_root}: the first boot enrolls the machine at {options.url}")
        return 0
    if options.sudo and options.user in (None, service.ROOT):
        raise Unusable("--sudo needs --user, with another user than root: an agent of root needs no sudo")
    before = service.find_user()
    if options.user and (os.geteuid() != 0 or options.root):
        raise Unusable("--user needs root, and the system's directories")
    if options.user == service.ROOT:
        if before is not None:
            account.restore_root(paths, image.own_program(), before)
    elif options.user:
        account.sudoers(options.user, options.sudo)  # refuses bad commands before anything changes
        account.create(options.user)
        account.change_owner(options.user, paths, image.own_program(), with_program=not options.sudo)
        account.allow(options.user, options.sudo)
    done = service.install(paths, options.root, user=options.user, has_sudo=bool(options.sudo))
    print(f"service   {done}")
    if options.user == service.ROOT and before is not None:
        print(f"user      root; the user {before} is no longer needed: userdel {before}")
    return 0
