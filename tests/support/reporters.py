"""Ends the work of an agent's reporter, whose thread lives as long as its process."""

from __future__ import annotations

from typing import Any

from stoker_agent.report import Reporter

_PATIENCE = 60.0


def forget_results(reporter: Reporter) -> None:
    """
    Drop all results that wait, so that the thread sleeps.

    Otherwise it would try to report them a hundred times a second until the last test of the process has ended, and
    take random numbers meanwhile, which Hypothesis mistakes for an unreliable test.
    """
    nothing: list[Any] = []
    reporter._runs.list_unreported = lambda: nothing
    reporter._unstored.clear()
    reporter._unnoted.clear()
    reporter.announce()
    reporter.wait(_PATIENCE)
    assert reporter._done == reporter._added, "the reporter is still busy"
