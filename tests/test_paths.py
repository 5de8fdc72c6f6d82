"""The server's paths are not longer than docs/performance.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[1]
_ROW = re.compile(r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
#: What may be added without a change of the page: modules, the share of calls, statements. On a busy machine, work in
#: the background may be counted in every round.
_MODULES, _CALLS, _STATEMENTS = 1, 0.08, 1


def test_paths_are_as_short_as_documented():
    documented = _lengths(_ROOT.joinpath("docs", "performance.md").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "bench.paths"], cwd=_ROOT, capture_output=True, text=True, timeout=240, check=True
    )
    measured = _lengths(done.stdout)
    assert len(measured) == 6
    longer = [
        f"{name}: {length}, documented {documented[name]}"
        for name, length in measured.items()
        if length[0] > documented[name][0] + _MODULES
        or length[1] > documented[name][1] * (1 + _CALLS)
        or length[2] > documented[name][2] + _STATEMENTS
    ]
    assert longer == []


def _lengths(text: str) -> dict[str, tuple[int, int, int]]:
    return {
        name: (int(modules), int(calls), int(statements)) for name, modules, calls, statements in _ROW.findall(text)
    }
