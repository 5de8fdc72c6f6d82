"""
Finds the function calls in unevaluated values, and so the dependencies of a part of a template.

Literals are data in templates that Stoker generates, such as those of groups. Their values were evaluated in the
template of the group, so they must stay data even if they look like calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from stoker.hot.functions import all_functions, call_names
from stoker.hot.paths import Path

#: The single key of a map whose value is data: no code evaluates it.
LITERAL = "Stoker::Data"


def literal(value: Any) -> Any:
    """Wrap ``value`` as a literal if any part of it looks like a call."""
    misleading = call_names() | {"if", LITERAL}
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if len(part) == 1 and not misleading.isdisjoint(part):
                return {LITERAL: value}
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return value


def is_literal(value: dict[str, Any]) -> bool:
    """Whether the map is a literal."""
    return len(value) == 1 and LITERAL in value


class Call(NamedTuple):
    """One function call in a template."""

    name: str
    argument: Any
    #: The path of the map that contains the call.
    path: Path


def calls(root: Any, path: Path = ()) -> Iterator[Call]:
    """
    All calls in ``root``, outer before inner, in the order of the text.

    Skips the contents of ``if``, because its branch is chosen later, and the contents of literals.
    """
    names = call_names()
    pending: list[tuple[Any, Path]] = [(root, path)]
    while pending:
        value, path = pending.pop()
        if type(value) is dict:
            if len(value) == 1:
                [(name, argument)] = value.items()
                if name in names or name == "if":
                    yield Call(name, argument, path)
                if name in ("if", LITERAL):
                    continue
            inner = [(part, (*path, key)) for key, part in value.items() if type(part) is dict or type(part) is list]
        elif type(value) is list:
            inner = [(p, (*path, index)) for index, p in enumerate(value) if type(p) is dict or type(p) is list]
        else:
            continue
        inner.reverse()
        pending += inner


def references(value: Any) -> frozenset[str]:
    """The names of all resources that ``value`` refers to with ``get_resource`` or ``get_attr``."""
    functions = all_functions()
    return frozenset(
        name
        for call in calls(value)
        if call.name in functions
        for name in functions[call.name].references(call.argument)
    )


def inline(value: Any, files: Mapping[str, str]) -> Any:
    """Replace each ``get_file`` of a file in ``files`` with the file's text."""
    if type(value) is dict:
        if len(value) == 1:
            name = value.get("get_file")
            if isinstance(name, str) and name in files:
                return files[name]
            if is_literal(value):
                return value
        return {key: inline(part, files) for key, part in value.items()}
    return [inline(part, files) for part in value] if type(value) is list else value
