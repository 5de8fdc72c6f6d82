"""Names keep to the project's vocabulary (docs/glossary.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
#: Module names end with a noun. These are nouns although they look like gerunds.
NOUNS = {"messaging", "publishing", "polling", "tracking", "string"}
#: Words of an earlier vocabulary, which says other things to readers than it means.
RETIRED = {
    *("anew", "bell", "door", "doors", "ear", "face", "faces", "foresight", "hand", "hands", "heard", "house"),
    *(
        "leftover",
        "leftovers",
        "lodging",
        "lodgings",
        "looks",
        "nobody",
        "nobodys",
        "party",
        "parties",
        "peer",
        "peers",
    ),
    *("rooms", "told", "whoever", "withheld"),
}


#: Past participles that do not say what a variable is.
PARTICIPLES = {"found", "given", "held", "known", "made", "said", "told"}


def words(name: str) -> list[str]:
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)]


def modules() -> Iterator[Path]:
    return (path for path in SOURCE.rglob("*.py") if "egg-info" not in str(path))


def defined(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and names of what a module defines: functions, classes, parameters, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def test_modules_are_named_by_nouns():
    names = {path: path.parent.name if path.stem == "__init__" else path.stem for path in modules()}
    assert len(names) > 500
    gerunds = {str(path) for path, name in names.items() if name.endswith("ing") and words(name)[-1] not in NOUNS}
    assert gerunds == set()


def test_no_name_has_a_retired_word():
    names = [(path, line, name) for path in modules() for line, name in defined(ast.parse(path.read_text()))]
    assert len(names) > 10_000
    assert [entry for entry in names if RETIRED & set(words(entry[2]))] == []
    assert [path for path in modules() if RETIRED & set(words(path.stem))] == []


def test_variables_are_nouns():
    names = [(path, line, name) for path in modules() for line, name in defined(ast.parse(path.read_text()))]
    assert [entry for entry in names if entry[2] in PARTICIPLES] == []


def test_names_of_tests_are_statements():
    """A name states a behaviour; a relative clause such as ``what_is_wrong_…`` hides its subject."""
    names = [
        (path.name, node.name)
        for path in Path(__file__).parent.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert len(names) > 1500
    wrong = [name for _, name in names if RETIRED & set(words(name)) or words(name)[1] in {"what", "who", "where"}]
    assert wrong == []
