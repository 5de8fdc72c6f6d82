"""Plugin of pytest: writes the functions of skipped tests to the file that ``STOKER_TEST_SKIPPED`` names."""

from __future__ import annotations

import os

import pytest

#: The variable for the file's path. `pytest @FILE` runs the functions again, where their tools are installed.
VARIABLE = "STOKER_TEST_SKIPPED"


def pytest_configure(config: pytest.Config) -> None:
    if (path := os.environ.get(VARIABLE)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_SkippedTests(path))


class _SkippedTests:
    def __init__(self, path: str) -> None:
        self._path = path
        self._names: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._names.add(report.nodeid.partition("[")[0])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._names.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        with open(self._path, "w") as file:
            file.writelines(f"{name}\n" for name in sorted(self._names))
