"""The agent's file contains its sources, unchanged, and runs."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

import stoker_agent
from stoker_agent.commands.build import build
from support.agents import AGENT_PYTHON

_SOURCES = Path(stoker_agent.__file__).parents[1]


def test_the_file_runs_and_has_all_modules(tmp_path):
    target = tmp_path / "agent.pyz"
    build(target)
    with zipfile.ZipFile(target) as file:
        names = [name for name in file.namelist() if name.startswith("stoker_agent/") and name.endswith(".py")]
        assert len(names) > 60
        assert [name for name in names if file.read(name) != (_SOURCES / name).read_bytes()] == []
        # Versions of zlib compress differently, and all processes of a site must have the same file.
        assert {entry.compress_type for entry in file.infolist()} == {zipfile.ZIP_STORED}
    done = subprocess.run([AGENT_PYTHON, str(target), "--help"], capture_output=True, text=True, check=True)
    assert "status" in done.stdout


@pytest.mark.slow
def test_an_agent_runs_its_first_config_although_its_file_was_replaced(agent, server, tmp_path):
    target, other = tmp_path / "agent.pyz", tmp_path / "other.pyz"
    build(target)
    other.write_text("another program")
    agent.start(program=(str(target),))
    server.until(lambda: server.polls)
    other.replace(target)
    assert agent.run(server.entry("c1", "echo done"))["deploy_stdout"] == "done\n"
