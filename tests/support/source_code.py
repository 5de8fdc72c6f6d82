"""
Facts of the source code, for tests of its structure.

A pass over all modules takes a second, so each test process makes one and keeps only what tests ask for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server" / "src" / "stoker"
#: The folders of all packages.
PACKAGES = tuple(
    sorted(path.parent for place in ("*/src", "plugins/*/src") for path in ROOT.glob(f"{place}/stoker*/__init__.py"))
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Takes the place of what a text gets at run time.
ANY = "…"


@dataclass(frozen=True)
class Definition:
    """A function or a class, with the number of its lines and methods."""

    name: str
    line: int
    lines: int
    methods: int
    is_class: bool


@dataclass(frozen=True)
class MethodCall:
    """A call of an attribute: of ``receiver``, with the first argument if that is a constant."""

    receiver: str
    method: str
    line: int
    first: object


@dataclass(frozen=True)
class Module:
    """What a module defines, imports, assigns, calls and says."""

    path: Path
    definitions: tuple[Definition, ...]
    #: Lines and names of functions, classes, parameters, variables and attributes.
    names: tuple[tuple[int, str], ...]
    #: Top-level names of absolute imports, anywhere in the module.
    imports: frozenset[str]
    #: Assigned attributes as (object, attribute).
    assigned: tuple[tuple[str, str], ...]
    #: Calls of the methods in ``LOG_METHODS``.
    log_calls: tuple[MethodCall, ...]
    texts: tuple[str, ...]


LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception"})


@cache
def modules(folder: Path) -> tuple[Module, ...]:
    """Return the modules below ``folder`` by path."""
    return tuple(_read(path) for path in sorted(folder.rglob("*.py")) if "egg-info" not in str(path))


def sources(*folders: str) -> Iterator[Module]:
    """Yield the modules of all packages, or of those with the names ``folders``."""
    for package in PACKAGES:
        if not folders or package.name in folders:
            yield from modules(package)


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the top-level names of the absolute imports of one module, anywhere in it."""
    statements: list[ast.AST] = [ast.parse(path.read_bytes())]
    for node in statements:  # imports are statements, so expressions are not searched
        statements.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return _imports(statements)


def _read(path: Path) -> Module:
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    return Module(
        path,
        definitions=tuple(_define(node) for node in nodes if isinstance(node, Function | ast.ClassDef)),
        names=tuple(name for node in nodes for name in _names(node)),
        imports=_imports(nodes),
        assigned=tuple(
            (ast.unparse(node.value), node.attr)
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        ),
        log_calls=tuple(call for node in nodes if (call := _log_call(node))),
        texts=tuple(text for node in nodes if (text := _text(node))),
    )


def _define(node: Function | ast.ClassDef) -> Definition:
    assert node.end_lineno is not None
    methods = sum(isinstance(member, Function) for member in node.body)
    return Definition(
        node.name, node.lineno, node.end_lineno - node.lineno + 1, methods, isinstance(node, ast.ClassDef)
    )


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield node.lineno, name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield node.lineno, name


def _imports(nodes: list[ast.AST]) -> frozenset[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return frozenset(names)


def _log_call(node: ast.AST) -> MethodCall | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS:
        receiver = node.func.value
        name = ast.unparse(receiver.func if isinstance(receiver, ast.Call) else receiver)
        first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        return MethodCall(name, node.func.attr, node.lineno, first)
    return None


def _text(node: ast.AST) -> str:
    """Return a text with an ellipsis for each value that it gets at run time."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else ANY for part in node.values)
    return ""
