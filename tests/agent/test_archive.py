"""The agent's file contains its sources, is small, and runs."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from stoker_agent import archive
from support.agents import AGENT_PYTHON

_SOURCES = Path(archive.__file__).parents[1]


def test_the_file_is_small_and_runs_and_has_all_modules(tmp_path):
    target, again = tmp_path / "agent.pyz", tmp_path / "again.pyz"
    archive.build(target)
    archive.build(again)
    assert target.read_bytes() == again.read_bytes()
    assert target.stat().st_size < 250_000
    with zipfile.ZipFile(target) as file:
        names = [name for name in file.namelist() if name.startswith("stoker_agent/") and name.endswith(".py")]
        assert len(names) > 60
        assert [name for name in names if file.read(name) != (_SOURCES / name).read_bytes()] == []
    done = subprocess.run([AGENT_PYTHON, str(target), "--help"], capture_output=True, text=True, check=True)
    assert "status" in done.stdout
