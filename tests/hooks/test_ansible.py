"""The hook of the group ansible with the real ansible-playbook."""

from __future__ import annotations

import pytest

GROUP = "ansible"
pytestmark = pytest.mark.slow

_PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: write the file
      copy:
        content: "{{ text }} of {{ heat_config_id }}\\n"
        dest: "{{ path }}"
    - name: output
      copy:
        content: "{{ text | upper }}"
        dest: "{{ heat_outputs_path }}.loud"
      tags: [out]
    - name: nothing
      command: "true"
      changed_when: false
"""


@pytest.fixture
def hook(hook, tmp_path, ansible_playbook):
    hook.environment["HEAT_ANSIBLE_CMD"] = str(ansible_playbook)
    hook.environment["HOME"] = str(tmp_path)
    return hook


def test_a_playbook_reports_changes_outputs_and_drift(hook, tmp_path):
    path = tmp_path / "made"
    inputs = {"text": "secret-text", "path": str(path)}
    first = hook.run(entry := hook.entry(_PLAY, outputs=["loud"], **inputs))
    assert (first.code, first.changed, first.report["loud"]) == (0, True, "SECRET-TEXT")
    assert path.read_text() == f"secret-text of {entry['id']}\n"
    assert first.items == ["write the file", "output"]
    assert "TASK [write the file]" in first.stdout
    again = hook.run(entry)
    assert (again.code, again.changed) == (0, False)
    path.write_text("drifted\n")
    drift = hook.run(entry, mode="check")
    assert (drift.code, drift.changed, drift.items) == (0, True, ["write the file"])
    assert "-drifted" in drift.report["deploy_changes"][0]["diff"]
    assert hook.run(entry, mode="preview").items == ["write the file"]
    assert path.read_text() == "drifted\n"


def test_failures_tags_and_the_single_file(hook, tmp_path):
    path = tmp_path / "made"
    entry = hook.entry(_PLAY, ["loud"], {"tags": "out"}, text="x", path=str(path))
    only = hook.run(entry)
    assert (only.code, only.report["loud"], only.items) == (0, "X", ["output"])
    assert not path.exists()
    failing = "- hosts: all\n  gather_facts: false\n  tasks:\n    - name: breaks\n      command: 'false'\n"
    failed = hook.run(hook.entry(failing))
    assert (failed.code, failed.items) == (2, ["breaks"])
    assert hook.run(hook.entry("- {no: play}")).code == 4
