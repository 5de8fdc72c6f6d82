"""The hook of the group puppet with the real puppet."""

from __future__ import annotations

import json

import pytest

from stoker_agent.live import parse
from support.tools import find_tool

GROUP = "puppet"
pytestmark = pytest.mark.slow

_MANIFEST = """
file { $facts['path']: content => "${facts['text']}\\n" }
file { "${facts['heat_outputs_path']}.loud": content => upcase($facts['text']) }
"""


@pytest.fixture
def hook(hook, tmp_path):
    find_tool("puppet")
    hook.environment.update(HOME=str(tmp_path), HEAT_PUPPET_HIERA_DATADIR=str(tmp_path / "hieradata"))
    return hook


def test_a_manifest_reports_changes_outputs_and_drift(hook, tmp_path):
    path = tmp_path / "made"
    entry = hook.entry(_MANIFEST, ["loud"], path=str(path), text="hello")
    first = hook.run(entry)
    assert (first.code, first.changed, first.report["loud"]) == (0, True, "HELLO")
    assert path.read_text() == "hello\n"
    assert any(f"File[{path}]" in item for item in first.items)
    path.write_text("drifted\n")
    drift = hook.run(entry, mode="check")
    assert (drift.code, drift.changed) == (0, True)
    assert "-drifted" in drift.stdout
    assert path.read_text() == "drifted\n"
    path.write_text("hello\n")
    again = hook.run(entry)
    assert (again.code, again.changed, again.items) == (0, False, [])


def test_failures_and_hiera_data(hook, tmp_path):
    refused = hook.run(hook.entry("fail('not here')"))
    assert refused.code == 1
    assert "not here" in refused.stderr
    entry = hook.entry("notify { $facts['deploy_config_name']: }", (), {"enable_hiera": True}, a=1)
    noted = hook.run(entry)
    assert noted.code == 0
    data = tmp_path / "hieradata" / "heat_config_app.json"
    assert json.loads(data.read_text()) == {"a": 1}
    assert data.stat().st_mode & 0o777 == 0o600


def test_resources_are_the_progress(hook, tmp_path):
    progress = tmp_path / "progress"
    hook.environment["STOKER_PROGRESS"] = str(progress)
    titles = [f"{tmp_path}/made{number}" for number in range(8)]
    manifest = "\n".join(f"file {{ '{title}': content => \"Info: x\\n\" }}" for title in titles)
    # The run goes on once the progress of its last file was written, which proves that progress is written during it.
    waits = (
        f"exec {{ '/bin/sh -c \"until grep -qF File[{titles[-1]}] {progress}; do sleep 0.05; done\"':"
        f" require => File['{titles[-1]}'], timeout => 60 }}"
    )
    outcome = hook.run(hook.entry(f"{manifest}\n{waits}"))
    assert outcome.code == 0, outcome
    lines = [parse(line) for line in progress.read_text().splitlines()]
    percents = [percent for percent, _ in lines]
    assert percents == sorted(percents)
    assert 0 < percents[0] < percents[-1] < 100
    resources = [message for _, message in lines]
    assert {f"/Stage[main]/Main/File[{title}]" for title in titles} <= set(resources)
    assert "valuat" not in outcome.stdout
    assert "Info:" not in outcome.stdout
    verbose = hook.run(hook.entry(manifest, (), {"enable_verbose": True}))
    assert "Info: Applying configuration" in verbose.stdout
    assert "valuat" not in verbose.stdout
