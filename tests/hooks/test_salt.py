"""The hook of the group salt with the real salt-call."""

from __future__ import annotations

import pytest

GROUP = "salt"
pytestmark = pytest.mark.slow

_STATES = """
the file:
  file.managed:
    - name: {{ opts['path'] }}
    - contents: {{ pillar['text'] }}
"""


@pytest.fixture
def hook(hook, tmp_path, salt_call):
    hook.use_salt(salt_call, tmp_path)
    return hook


def test_states_report_changes_and_drift(hook, tmp_path):
    path = tmp_path / "made"
    entry = hook.entry(_STATES, ["retcode"], path=str(path), text="hello")
    first = hook.run(entry)
    assert (first.code, first.changed, first.report["retcode"]) == (0, True, 0), first
    assert path.read_text() == "hello\n"
    assert first.items == [f"the file: {path}"]
    path.write_text("drifted\n")
    drift = hook.run(entry, mode="check")
    assert (drift.code, drift.changed) == (0, True)
    assert path.read_text() == "drifted\n"
    path.write_text("hello\n")
    assert hook.run(entry).changed is False


def test_failed_states_and_unreadable_ones(hook):
    failed = hook.run(hook.entry({"breaks": {"cmd.run": [{"name": "exit 7"}]}}))
    assert (failed.code, [change["outcome"] for change in failed.report["deploy_changes"]]) == (2, ["failed"])
    unreadable = hook.run(hook.entry("a: {% nothing"))
    assert unreadable.code == 1
    assert unreadable.report["deploy_status_reason"]


def test_states_are_the_progress(hook, tmp_path):
    progress = tmp_path / "progress"
    hook.environment["STOKER_PROGRESS"] = str(progress)
    seen = f"until grep -q 'state 2' {progress}; do sleep 0.1; done"
    states = {"first": {"test.nop": []}, "waits": {"cmd.run": [{"name": seen}, {"timeout": 60}]}}
    outcome = hook.run(entry := hook.entry(states))
    assert outcome.code == 0, outcome
    assert progress.read_text().splitlines() == ["state 1: first", f"state 2: {seen}"]
    assert "Running state" not in outcome.stdout + outcome.stderr
    assert not (tmp_path / "runs" / entry["id"] / "salt.log").exists()
