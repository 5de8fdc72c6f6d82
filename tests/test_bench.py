"""`make bench` compares its results with the committed ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from bench.comparison import committed, find_worse


@pytest.fixture
def results(tmp_path) -> Path:
    """A repository with two committed results and a newer one that is not committed."""

    def store(name: str, cases: dict[str, dict[str, float]], **facts: str) -> None:
        (tmp_path / f"{name}.json").write_text(json.dumps({"cases": {"stoker": cases}, **facts}))

    store("2026-01-01", {"poll": {"cpu_s_per_1000": 9.0}, "create": {"cpu_s_per_1000": 1.0, "p50_ms": 1.0}})
    store("2026-01-02", {"poll": {"cpu_s_per_1000": 0.1}, "stack": {"delete_cpu_s": 0.02}}, database="sqlite")
    store("2026-01-03", {"poll": {"cpu_s_per_1000": 0.5}}, database="postgresql")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    store("2026-01-04", {"poll": {"cpu_s_per_1000": 5.0}})
    return tmp_path


def worse(results: Path, now: dict[str, dict[str, float]], database: str = "sqlite") -> list[str]:
    return [str(each) for each in find_worse(now, committed(results), database)]


def test_more_cpu_than_in_the_newest_committed_result_is_reported(results):
    now = {"poll": {"cpu_s_per_1000": 0.13}, "create": {"cpu_s_per_1000": 1.3, "p50_ms": 9.0}}
    assert worse(results, now) == [
        "poll, cpu_s_per_1000: 0.13 instead of 0.1 (+30 %, 2026-01-02)",
        "create, cpu_s_per_1000: 1.3 instead of 1 (+30 %, 2026-01-01)",
    ]


def test_each_database_is_compared_with_its_own_results(results):
    assert worse(results, {"poll": {"cpu_s_per_1000": 0.6}}, "postgresql") == []
    assert len(worse(results, {"poll": {"cpu_s_per_1000": 0.7}}, "postgresql")) == 1


def test_differences_within_the_tolerance_or_the_clock_s_resolution_are_none(results):
    same = {"poll": {"cpu_s_per_1000": 0.124}, "stack": {"delete_cpu_s": 0.04}, "new": {"cpu_s_per_1000": 7.0}}
    assert worse(results, same) == []


def test_without_a_repository_there_is_nothing_to_compare_with(tmp_path):
    assert committed(tmp_path) == []
