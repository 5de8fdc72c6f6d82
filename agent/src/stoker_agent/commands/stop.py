"""``stoker-agent stop``: end the agent, for service managers other than systemd."""

from __future__ import annotations

import argparse

from stoker_agent.config import Paths
from stoker_agent.service import stop_process


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add no options."""


def main(_: argparse.Namespace, paths: Paths) -> int:
    """End the agent, and wait for its end. Raises Unusable if it does not end."""
    stop_process(paths)
    return 0
