"""pyproject.toml declares exactly the packages that each part of the distribution imports."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from support.source_code import imports

_ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads(_ROOT.joinpath("pyproject.toml").read_text())["project"]
_DISTRIBUTIONS = packages_distributions()
_CLIENT, _OSC, _TESTS = _ROOT / "src" / "stoker_client", _ROOT / "src" / "stoker_client" / "osc", _ROOT / "tests"
_PLUGINS = sorted(_ROOT.glob("plugins/*"))
_OWN = {"stoker", "stoker_agent", "stoker_client", "stoker_relay", "bench", "tests"} | {
    path.name for plugin in _PLUGINS for path in plugin.glob("src/stoker_*")
}
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


def _declared(*extras: str) -> set[str]:
    """The distributions of the base and of the extras."""
    lists = [_PROJECT["dependencies"], *(_PROJECT["optional-dependencies"][extra] for extra in extras)]
    return {_normal(re.split(r"[\[<>=~! ]", requirement)[0]) for part in lists for requirement in part}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


_BASE_MODULES = _modules(_CLIENT, without=[_OSC, _CLIENT / "examples"])
_SERVER_MODULES = _modules(_ROOT / "src" / "stoker", _ROOT / "src" / "stoker_relay")


@pytest.mark.parametrize(
    "modules, declared",
    [
        (_BASE_MODULES, _declared()),
        (_SERVER_MODULES, _declared("server")),
        (_modules(_OSC), _declared("osc")),
        (
            _modules(_TESTS, *_ROOT.glob("plugins/*/tests"), _ROOT / "bench", without=_FOREIGN),
            _declared("server", "test"),
        ),
    ],
    ids=["base", "server", "osc", "test"],
)
def test_every_import_is_declared(modules, declared):
    assert _imported(modules) - declared == set()


@pytest.mark.parametrize("plugin", _PLUGINS, ids=lambda path: path.name)
def test_each_plugin_declares_what_it_imports(plugin):
    project = tomllib.loads(plugin.joinpath("pyproject.toml").read_text())["project"]
    declared = {_normal(re.split(r"[\[<>=~! ]", requirement)[0]) for requirement in project["dependencies"]}
    assert _imported(_modules(plugin / "src")) == declared - {"stoker"}


def test_the_tests_of_the_server_need_no_provider():
    """A test whose template needs one has the mark ``needs_provider`` of ``support.stacks``."""
    line = re.compile(r"^(?:from|import) stoker_openstack", re.MULTILINE)
    assert [path for path in _modules(_TESTS) if line.search(path.read_text())] == [_TESTS / _CLEANUP]


def test_every_dependency_of_the_base_and_of_the_server_is_imported():
    assert _declared() - _imported(_BASE_MODULES) == set()
    assert _declared("server") - _declared() - _imported(_SERVER_MODULES) == set()


def test_the_agent_and_the_examples_import_the_standard_library_only():
    # Hooks read YAML configs where the server has PyYAML, and say so where it has not.
    assert _imported(_modules(_ROOT / "src" / "stoker_agent", _CLIENT / "examples")) <= {"pyyaml"}
