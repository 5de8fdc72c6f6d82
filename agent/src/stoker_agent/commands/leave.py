"""``stoker-agent leave``: remove the agent from this machine, and this machine from Stoker."""

from __future__ import annotations

import argparse

from stoker_agent.config import Paths
from stoker_agent.leave import leave


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--keep-data", action="store_true", help="keep the hooks, the state of runs and the log")
    parser.add_argument("--force", action="store_true", help="also while a run is in progress, which is interrupted")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Remove the agent. Raises Unusable while a run is in progress."""
    leave(paths, options.root, keep_data=options.keep_data, force=options.force)
    return 0
