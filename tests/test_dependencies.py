"""The pyproject.toml of each distribution declares exactly the packages that it imports."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import stoker_agent
from support.source_code import imports

_ROOT = Path(__file__).parents[1]
_DISTRIBUTIONS = packages_distributions()
_OSC, _TESTS = _ROOT / "client" / "src" / "stoker_client" / "osc", _ROOT / "tests"
_FOLDERS = [_ROOT / name for name in ("agent", "client", "server", "relay")] + sorted(_ROOT.glob("plugins/*"))
_OWN = {"bench", "tests"} | {path.name for folder in _FOLDERS for path in folder.glob("src/stoker*")}
_OWN |= {path.stem for folder in (_TESTS, *_ROOT.glob("plugins/*/tests")) for path in folder.iterdir()}
#: Deletes what a run of heat-tempest-plugin has left at an OpenStack.
_CLEANUP = Path("support", "tempest_cleanup.py")
#: Executed by the Python of an installed Keystone.
_FOREIGN = {_TESTS / "support" / "keystone_wsgi.py"}


def _modules(*folders: Path, without: Iterable[Path] = ()) -> list[Path]:
    modules = (path for folder in folders for path in folder.rglob("*.py"))
    return [path for path in modules if not any(path.is_relative_to(other) for other in without)]


def _imported(modules: Iterable[Path]) -> set[str]:
    """The distributions that the modules import, beside the standard library and Stoker."""
    names = {name for module in modules for name in imports(module)}
    return {_normal(_DISTRIBUTIONS[name][0]) for name in names - _OWN - set(sys.stdlib_module_names)}


def _declared(folder: Path, *extras: str) -> set[str]:
    """The distributions that a folder's pyproject.toml requires, or those of its extras."""
    project = tomllib.loads(folder.joinpath("pyproject.toml").read_text())["project"]
    lists = [project["optional-dependencies"][extra] for extra in extras] or [project.get("dependencies", [])]
    return {_normal(re.split(r"[\[<>=~! ]", requirement)[0]) for part in lists for requirement in part}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda path: path.name)
def test_each_distribution_declares_what_it_imports(folder):
    without = [_OSC, _OSC.parent / "examples", *folder.glob("src/stoker_catalog/libraries")]
    own = {name for name in _declared(folder) if name.startswith("stoker-")}
    optional = {"pyyaml"} if folder.name == "agent" else set()
    assert _imported(_modules(folder / "src", without=without)) - optional == _declared(folder) - own


def test_the_commands_of_openstack_declare_what_they_import():
    client = _ROOT / "client"
    assert _imported(_modules(_OSC)) <= _declared(client) | _declared(client, "osc")


def test_the_tests_declare_what_they_import():
    tests = _modules(_TESTS, *_ROOT.glob("plugins/*/tests"), _ROOT / "bench", without=_FOREIGN)
    installed = set().union(*map(_declared, _FOLDERS))
    assert _imported(tests) <= installed | _declared(_ROOT, "test")


def test_the_tests_of_the_server_need_no_provider():
    """A test whose template needs one has the mark ``needs_provider`` of ``support.stacks``."""
    line = re.compile(r"^(?:from|import) stoker_openstack", re.MULTILINE)
    assert [path for path in _modules(_TESTS) if line.search(path.read_text())] == [_TESTS / _CLEANUP]


def test_the_agent_and_the_examples_import_the_standard_library_only():
    # Hooks read YAML configs where the server has PyYAML, and say so where it has not.
    assert _imported(_modules(_ROOT / "agent" / "src", _OSC.parent / "examples")) <= {"pyyaml"}


def test_all_distributions_have_one_version():
    projects = [
        tomllib.loads(folder.joinpath("pyproject.toml").read_text())["project"] for folder in (_ROOT, *_FOLDERS)
    ]
    required = [requirement for project in projects for requirement in project.get("dependencies", ())]
    pinned = {requirement.partition("==")[2] for requirement in required if re.match(r"stoker-\w+==", requirement)}
    assert {project["version"] for project in projects} | pinned == {stoker_agent.__version__}
