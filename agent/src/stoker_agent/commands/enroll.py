"""``stoker-agent enroll``: exchange an enrollment token for this server's own key."""

from __future__ import annotations

import argparse
from typing import Optional, Tuple

from stoker_agent import machine, proxy
from stoker_agent.config import Paths, Unusable, find
from stoker_agent.enrollment import Invitation, enroll, keep_invitation, read_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--url", help="where Stoker is reached")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="the enrollment token, - for standard input (default: STOKER_TOKEN, else standard input)",
    )
    parser.add_argument("--token", help=argparse.SUPPRESS)
    parser.add_argument("--ca-file", help="certificate to trust, when it is not the system's")
    parser.add_argument("--at-boot", action="store_true", help="in an image: enroll each machine at its first start")
    parser.add_argument(
        "--same-machine", action="store_true", help="keep the enrollment although the machine's id changed"
    )


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Enroll this machine. Raises Unusable."""
    if options.token is not None:
        raise Unusable(
            "every user of this machine can read a token on a command line:"
            " give it on standard input, in --token-file FILE or in STOKER_TOKEN"
        )
    if options.same_machine:
        machine.accept(paths.state)
        print("this machine keeps its enrollment")
        return 0
    if not options.url:
        raise Unusable("--url is missing: where Stoker is reached")
    url, token = options.url.rstrip("/"), read_token(options.token_file)
    if options.at_boot:
        print(f"kept in {keep_invitation(paths, Invitation(url, token, options.ca_file))}")
        return 0
    config = enroll(paths, url, token, options.ca_file, *_proxy_settings(paths, url))
    print(f"enrolled as server {config.name or ''} ({config.server_id}) at {config.url}")
    if not config.approved:
        print(f"approval  awaited: stoker server approve {config.name}")
    return 0


def _proxy_settings(paths: Paths, url: str) -> Tuple[Optional[str], Optional[str]]:
    """Return the environment's proxy, which the service does not have, else the settings of an earlier enrollment."""
    settings = proxy.environment_settings(url)
    if settings[0] is None:
        config = find(paths)
        return settings if config is None else (config.proxy, config.no_proxy)
    return settings
