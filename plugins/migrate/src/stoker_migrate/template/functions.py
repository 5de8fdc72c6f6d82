"""Finds the calls of HOT functions that refer to resources, parameters and files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stoker_migrate.template.source_text import Path


def calls(value: Any, names: tuple[str, ...], path: Path = ()) -> Iterator[tuple[Path, str, Any]]:
    """Yield path, function and argument of every call of the functions ``names`` in ``value``."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in names:
            yield path, *next(iter(value.items()))
        for key, inner in value.items():
            yield from calls(inner, names, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from calls(inner, names, (*path, index))


def list_resources(value: Any) -> list[str]:
    """Return the names of the resources that ``value`` refers to, in the order of the calls."""
    names = []
    for _, function, argument in calls(value, ("get_resource", "get_attr")):
        name = (
            argument if function == "get_resource" else argument[0] if isinstance(argument, list) and argument else ""
        )
        if isinstance(name, str):
            names.append(name)
    return names


def list_parameters(value: Any) -> set[str]:
    """Return the names of the parameters that ``value`` refers to."""
    arguments = [argument for _, _, argument in calls(value, ("get_param",))]
    names = {argument[0] if isinstance(argument, list) and argument else argument for argument in arguments}
    return {name for name in names if isinstance(name, str)}


def substitute(value: Any, replacements: dict[Path, Any], path: Path = ()) -> Any:
    """Return a copy of ``value`` with the parts at some paths replaced."""
    if path in replacements:
        return replacements[path]
    if isinstance(value, dict):
        return {key: substitute(inner, replacements, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [substitute(inner, replacements, (*path, index)) for index, inner in enumerate(value)]
    return value
