"""``stoker-agent service``: the agent as a service of this machine; other service managers call ``stop``."""

from __future__ import annotations

import argparse

from stoker_agent import service
from stoker_agent.config import Paths

_NOT_RUNNING = 3  # as init scripts report it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("action", choices=("install", "stop", "status"), help="install: start it, now and at boot")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Install, stop or look. Raises Unusable if the service manager refuses."""
    if options.action == "install":
        print(f"service   {service.install(paths, options.root).describe()}")
    elif options.action == "stop":
        service.stop_process(paths)
    elif service.find_process(paths) is None:
        print("stoker-agent does not run")
        return _NOT_RUNNING
    else:
        print("stoker-agent runs")
    return 0
