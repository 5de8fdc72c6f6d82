"""Functions and classes stay small enough to be read at once (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
MOST_LINES = 50
MOST_METHODS = 15
MOST_BRANCHES = 10
#: Share of the functions that may have more branches, where dividing them would hide one decision in several places.
MOST_COMPLEX = 0.008
#: A class of the HTTP client has one method for each call of an API, so that users find every call in one place.
HTTP_CLIENT = SOURCE / "stoker_client"
#: Alembic generates migrations, which are not changed after their release.
MIGRATIONS = SOURCE / "stoker" / "store" / "migrations" / "versions"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def definitions() -> Iterator[tuple[Path, Function | ast.ClassDef]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function | ast.ClassDef):
                yield path, node


def functions() -> list[tuple[Path, Function]]:
    return [(path, node) for path, node in definitions() if isinstance(node, Function)]


def count_lines(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def test_functions_are_short():
    measured = [(path, node) for path, node in functions() if not path.is_relative_to(MIGRATIONS)]
    assert len(measured) > 4000
    assert [f"{path}:{node.name}" for path, node in measured if count_lines(node) > MOST_LINES] == []


def test_classes_have_few_methods():
    classes = [(path, node) for path, node in definitions() if isinstance(node, ast.ClassDef)]
    assert len(classes) > 800
    sizes = {
        f"{path.relative_to(SOURCE)}:{node.name}": sum(isinstance(member, Function) for member in node.body)
        for path, node in classes
        if not path.is_relative_to(HTTP_CLIENT)
    }
    assert {name: size for name, size in sizes.items() if size > MOST_METHODS} == {}


def test_few_functions_have_many_branches():
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "C901", "--ignore-noqa", "--output-format", "json"]
    limit = f"lint.mccabe.max-complexity = {MOST_BRANCHES}"
    run = subprocess.run([*ruff, "--config", limit, str(SOURCE)], capture_output=True, text=True, check=False)
    complex_functions = [f"{entry['filename']}: {entry['message']}" for entry in json.loads(run.stdout)]
    assert len(complex_functions) < MOST_COMPLEX * len(functions()), "\n".join(complex_functions)
