"""An installation never fails for want of the console: its build says what is missing, and ends in time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.ports import free_port
from support.source_code import ROOT


@pytest.fixture
def program(tmp_path) -> Path:
    """The build's program in a copy of the sources, without packages."""
    folder = tmp_path / "console"
    shutil.copytree(ROOT / "console", folder, ignore=shutil.ignore_patterns("node_modules"))
    return folder / "build.py"


def build(program: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words[:-1], str(program), *words[-1:]]
    variables = {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=150, check=False)


def test_without_node_the_build_succeeds_with_a_sentence(program, tmp_path):
    ended = build(program, "-S", "", PATH=str(tmp_path))  # -S: without this environment's packages
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "Node.js 20.19 or newer is needed" in ended.stderr
    assert build(program, "-S", "--strict", PATH=str(tmp_path)).returncode == 1
    assert not (tmp_path / "server").exists()


def test_without_the_registry_the_build_succeeds_with_a_sentence(program, tmp_path):
    registry = f"http://127.0.0.1:{free_port()}/"
    environment = {"npm_config_registry": registry, "npm_config_cache": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    ended = build(program, "", **environment)
    assert ended.returncode == 0
    assert "the npm registry may be out of reach" in ended.stderr or "Node.js" in ended.stderr
    assert not (tmp_path / "server").exists()
