"""Stoker as wheels in an empty virtual environment, used from an empty directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.installations import plain_environment
from support.ports import free_port
from support.processes import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_ROOT = Path(__file__).parents[2]
_BASE, _SERVER = ("agent", "client"), ("server", "relay")
_PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
_PACKAGES = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, str]:
    """The wheel of each distribution, built in a copy, because the build writes into the tree."""
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    built: dict[str, str] = {}
    for name in (*_BASE, *_SERVER):
        shutil.copytree(_ROOT / name, tree / name, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__", "build"))
        words = ("wheel", str(tree / name), "--no-deps", "--wheel-dir", str(folder))
        _run([sys.executable, *_PIP, *words], tree, PIP_NO_COMPILE="1")
        [built[name]] = map(str, folder.glob(f"stoker_{name}-*.whl"))
    return built


@pytest.fixture(scope="module")
def base(wheels, tmp_path_factory) -> Path:
    """The programs of an installation without the server."""
    return _install([wheels[name] for name in _BASE], tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def complete(wheels, base, tmp_path_factory) -> Path:
    """The programs of an installation with the server. The libraries of ``base`` need no second installation."""
    return _install(list(wheels.values()), tmp_path_factory.mktemp("complete"), base.parent / _PACKAGES)


def _install(requirements: list[str], folder: Path, libraries: Path | None = None) -> Path:
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
    if libraries is not None:
        ignored = shutil.ignore_patterns("stoker*", "__pycache__")
        shutil.copytree(libraries, folder / _PACKAGES, copy_function=os.link, dirs_exist_ok=True, ignore=ignored)
    python = str(folder / "bin" / "python")
    # Modules are compiled when they are imported: most are not.
    words = ("install", "--no-compile", "-c", str(_ROOT / "constraints.txt"), *requirements)
    _run([sys.executable, *_PIP, "--python", python, *words], folder)
    return folder / "bin"


def _run(command: list[str], folder: Path, *, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=folder, env={**plain_environment(), **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def test_the_base_has_client_and_agent_without_the_servers_libraries(base, tmp_path):
    code = "import importlib.util as u; print([n for n in ('psycopg', 'yaql') if u.find_spec(n)])"
    assert _run([str(base / "python"), "-c", code], tmp_path).stdout.strip() == "[]"
    assert "trigger" in _run([str(base / "stoker"), "--help"], tmp_path).stdout
    assert "usage" in _run([str(base / "stoker-agent"), "--help"], tmp_path).stdout
    assert _run([str(base / "stoker"), "agent", "--help"], tmp_path).stdout


@pytest.mark.parametrize("command", [("serve",), ("demo",), ("env",), ("db", "purge")], ids=" ".join)
def test_a_command_of_the_server_without_the_server_names_the_remedy(base, tmp_path, command):
    line = _run([str(base / "stoker"), *command], tmp_path, status=2).stderr.splitlines()[-1]
    assert f"No such command '{command[0]}'" in line
    assert "stoker-server, which is not installed (pip install stoker-server)" in line


def test_the_demo(complete, tmp_path):
    shown = _run([str(complete / "stoker"), "demo"], tmp_path, TMPDIR=str(tmp_path)).stdout
    assert "three-tier is complete" in shown
    assert list(tmp_path.iterdir()) == []


def test_the_first_steps_of_the_readme(complete, tmp_path):
    """All lines but those for the `openstack` command, which the tests' extra installs."""
    folder, home = tmp_path / "empty", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    variables = {
        "HOME": str(home),
        "PATH": f"{complete}:/usr/bin:/bin",
        "OS_CLOUD": "stoker",
        "STOKER_PORT": str(free_port()),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    serve, *lines = _first_steps()
    environment = {**plain_environment(), **variables}
    with running(serve.split(), cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server:
        while "OS_CLOUD=stoker" not in server.stdout.readline():  # the last line of the start
            assert server.poll() is None
        for line in lines:
            status = 1 if line.startswith("stoker stack create broken") else 0
            _run(["bash", "-c", line], folder, status=status, **variables)
        assert "python3 -c" in _run([str(complete / "stoker"), "server", "enroll", "web1"], folder, **variables).stdout
    assert {"examples"} == {path.name for path in folder.iterdir()}


def _first_steps() -> list[str]:
    text = _ROOT.joinpath("docs", "first-steps.md").read_text().partition("## The walk")[2].partition("\n## ")[0]
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    return [line for line in lines if line.startswith("stoker ")]
