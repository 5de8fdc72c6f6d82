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
from stoker_agent.self_update import report_test
from stoker_agent.web import Unreachable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--update", metavar="ID", help="also report to Stoker that the update ID is in progress")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Import every module, read the enrollment and, with ``--update``, call Stoker. Raises Unusable."""
    for module in pkgutil.walk_packages(stoker_agent.__path__, "stoker_agent."):
        if not module.name.endswith(("__main__", ".install")):
            importlib.import_module(module.name)
    config = read(paths.config)
    proxy.configure(config.proxy, config.no_proxy)
    if not os.access(str(paths.state), os.W_OK):
        raise Unusable(f"cannot write to {paths.state}")
    if options.update:
        try:
            report_test(config, options.update)
        except Unreachable as error:
            raise Unusable(f"cannot report to {config.url}: {error}") from None
    print(f"stoker-agent {__version__} passes its self-test ({len(list_builtin())} hooks)")
    return 0
