"""``stoker-agent run-once``: run pending deployments once, report, and exit (for cron, images and containers)."""

from __future__ import annotations

import argparse

from stoker_agent.commands import run
from stoker_agent.config import Paths, Unusable

#: The exit code if all results were reported and some run failed.
RUNS_FAILED = 3
_FACTS_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    run.add_source_arguments(parser)
    parser.add_argument(
        "--report-seconds",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="how long to wait until results are accepted; later starts report the rest (%(default)s)",
    )


def main(options: argparse.Namespace, paths: Paths) -> int:
    """
    Fetch documents and run what is new until nothing is. Return 0, or RUNS_FAILED if a run failed.

    Raises Unusable if no source answers, or if results are left to report.
    """
    agent = run.create_agent(options, paths)
    outcome = agent.once(options.report_seconds, _FACTS_SECONDS)
    print(f"{outcome.runs} runs, {outcome.failed} failed")
    if outcome.unreported:
        raise Unusable(f"{outcome.unreported} results are not reported yet: a later start reports them")
    return RUNS_FAILED if outcome.failed else 0
