"""
Lists the CPU time of tests, with all processes that they start, after a run with ``--cpu-times``.

CPU time depends little on what else the machine does. PostgreSQL is not counted, because all test processes share it. A
process that several tests share is counted in each of them for what it does meanwhile.
"""

from __future__ import annotations

import itertools
import os
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.processes import list_children

_TICKS = os.sysconf("SC_CLK_TCK")
_TESTS_LISTED = 25


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", action="store_true", help="list folders and the slowest tests by CPU time")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.cpu_times:
        config.pluginmanager.register(CpuTimes())


class CpuTimes:
    """Adds ``cpu_seconds`` to the report of each phase of a test. The process that runs the tests may be another."""

    def __init__(self) -> None:
        self._before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:  # not called in the process that distributes tests
        self._before = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = cpu_seconds()
        report.cpu_seconds, self._before = now - self._before, now
        return report

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        tests: Counter[str] = Counter()
        for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
            if seconds := getattr(report, "cpu_seconds", 0.0):
                tests[report.nodeid] += seconds
        folders: Counter[str] = Counter()
        for test, seconds in tests.items():
            folders["/".join(test.partition("::")[0].split("/")[:2])] += seconds
        terminalreporter.section(f"{sum(tests.values()):.0f} seconds of CPU in tests")
        for name, seconds in [*folders.most_common(), *tests.most_common(_TESTS_LISTED)]:
            terminalreporter.write_line(f"{seconds:8.2f} {name}")


def cpu_seconds() -> float:
    """Return the CPU time of this process, its descendants and those that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + sum(map(_used_by, list_children(os.getpid())))


def _used_by(pid: int) -> float:
    """Return the CPU time of a process and its descendants; 0 if it has just ended."""
    try:
        # After the name, which may contain anything: the state is field 3, the times are fields 14 to 17.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(_used_by, list_children(pid)))
