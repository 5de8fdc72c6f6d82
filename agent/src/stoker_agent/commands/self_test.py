"""``stoker-agent self-test``: checks that this program can be the agent of this machine."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil

import stoker_agent
from stoker_agent import __version__, proxy
from stoker_agent.config import Paths, Unusable, read
from stoker_agent.programs import list_builtin
from stoker_agent.web import Unreachable, call_once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--online", action="store_true", help="also call Stoker with this server's key")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Import every module, read the enrollment and, with ``--online``, call Stoker. Raises Unusable."""
    for module in pkgutil.walk_packages(stoker_agent.__path__, "stoker_agent."):
        if not module.name.endswith(("__main__", ".install")):
            importlib.import_module(module.name)
    config = read(paths.config)
    proxy.configure(config.proxy, config.no_proxy)
    if not os.access(str(paths.state), os.W_OK):
        raise Unusable(f"cannot write to {paths.state}")
    if options.online:
        try:
            answer = call_once(config, "GET", "/agent/v1/approval?wait=0")
        except Unreachable as error:
            raise Unusable(f"cannot reach {config.url}: {error}") from None
        if answer.status != 200:
            raise Unusable(f"{config.url} does not accept this server's key: {answer.summary()}")
    print(f"stoker-agent {__version__} passes its self-test ({len(list_builtin())} hooks)")
    return 0
