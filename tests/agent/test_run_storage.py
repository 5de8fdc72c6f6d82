"""The runs on disk: what the agent keeps of runs that were reported."""

from __future__ import annotations

import errno
import os

import pytest

from stoker_agent import runs
from stoker_agent.disk import Disk
from stoker_agent.outbox import Outbox
from stoker_agent.runs import PastRuns, Runs


@pytest.fixture
def stored(tmp_path):
    return Runs(tmp_path)


def report(stored, *ids):
    """Begin, end and acknowledge runs, each a second after the one before."""
    for number, id in enumerate(ids):
        folder = stored.begin({"id": id})
        stored.end({"id": id}, {"deploy_status_code": 0})
        stored.acknowledge(id)
        now = folder.stat().st_mtime
        os.utime(folder / "acknowledged", (now + number, now + number))


def test_only_the_newest_reported_runs_keep_their_files(stored, monkeypatch):
    monkeypatch.setattr(runs, "_KEPT_RUNS", 2)
    report(stored, "a", "b", "c", "d")
    stored.forget_all_but({"a"})
    assert sorted(folder.name for folder in stored.list_folders("acknowledged")) == ["a", "c", "d"]
    assert [stored.has_begun(id) for id in "abcd"] == [True] * 4


def test_runs_that_are_not_reported_keep_their_files(stored, monkeypatch):
    monkeypatch.setattr(runs, "_KEPT_RUNS", 0)
    stored.begin({"id": "a"})
    stored.begin({"id": "b"})
    stored.end({"id": "b"}, {"deploy_status_code": 0})
    stored.forget_all_but(())
    assert stored.list_interrupted() == ["a"]
    assert stored.list_unreported() == ["b"]


def test_the_list_of_past_runs_is_bounded_and_keeps_what_documents_list(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_MOST_PAST", 10)
    path = tmp_path / "past-runs"
    past = PastRuns(path)
    for number in range(11):
        past.add([f"run-{number}"], wanted={"run-1"})
    for reopened in (past, PastRuns(path)):
        assert [number for number in range(11) if f"run-{number}" in reopened] == [1, 6, 7, 8, 9, 10]
    assert len(path.read_text().split()) == 6


def test_a_write_that_fails_is_left_until_it_or_its_successor_succeeds(tmp_path):
    full, released = [True], []

    def write():
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")

    disk = Disk(tmp_path / "runs", Outbox(None), release=lambda: released.append(1))
    assert [disk.write(key, write) for key in ("c1", "c2")] == [False, False]
    assert released == [1, 1]
    assert disk.reason == f"the agent cannot write {tmp_path}/runs: No space left on device"
    assert disk.write("c1", lambda: None)
    assert (disk.holds("c1"), disk.holds("c2"), disk.retry()) == (False, True, False)
    full.clear()
    assert (disk.retry(), disk.reason) == (True, "")
