"""Functions and classes stay small enough to be read at once (CONTRIBUTING.md)."""

from __future__ import annotations

import json
import subprocess
import sys

from support.source_code import PACKAGES, ROOT, SERVER, Definition, Module, sources

MOST_LINES = 50
MOST_METHODS = 15
MOST_BRANCHES = 10
#: Share of the functions that may have more branches, where dividing them would hide one decision in several places.
MOST_COMPLEX = 0.008
#: A class of the HTTP client has one method for each call of an API, so that users find every call in one place.
HTTP_CLIENT = ROOT / "client"
#: A resource type has one method for everything that may happen to its resources.
RESOURCE_TYPES = (SERVER / "resources", SERVER / "types", ROOT / "plugins/openstack/src/stoker_openstack/types")


def functions() -> list[tuple[Module, Definition]]:
    return [(module, item) for module in sources() for item in module.definitions if not item.is_class]


def test_functions_are_short():
    measured = functions()
    assert len(measured) > 4000
    assert [f"{module.path}:{item.name}" for module, item in measured if item.lines > MOST_LINES] == []


def test_classes_have_few_methods():
    classes = [(module.path, item) for module in sources() for item in module.definitions if item.is_class]
    assert len(classes) > 800
    sizes = {
        f"{path.relative_to(ROOT)}:{item.name}": item.methods
        for path, item in classes
        if not path.is_relative_to(HTTP_CLIENT)
        and not (item.name.endswith("Type") and any(map(path.is_relative_to, RESOURCE_TYPES)))
    }
    assert {name: size for name, size in sizes.items() if size > MOST_METHODS} == {}


def test_few_functions_have_many_branches():
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "C901", "--ignore-noqa", "--output-format", "json"]
    limit = f"lint.mccabe.max-complexity = {MOST_BRANCHES}"
    run = subprocess.run([*ruff, "--config", limit, *map(str, PACKAGES)], capture_output=True, text=True, check=False)
    complex_functions = [f"{entry['filename']}: {entry['message']}" for entry in json.loads(run.stdout)]
    assert len(complex_functions) < MOST_COMPLEX * len(functions()), "\n".join(complex_functions)
