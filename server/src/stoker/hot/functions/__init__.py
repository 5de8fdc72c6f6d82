"""The functions of the template language, by name and version. ``base`` says what a function is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from stoker.hot import syntaxes
from stoker.hot.functions import containers, references, texts, yaql
from stoker.hot.functions.base import Function
from stoker.model.errors import InvalidTemplateVersion

__all__ = ["Function", "all_functions", "call_names", "evaluators", "functions_of", "known_in", "lookup"]


@cache
def all_functions() -> Mapping[str, Function]:
    """Return the functions of HOT and of other syntaxes by name."""
    modules = (containers, references, texts, yaql)
    types = [item for module in modules for item in vars(module).values() if isinstance(item, type)]
    own = [item() for item in types if issubclass(item, Function) and item is not Function]
    others = [function for syntax in syntaxes.load() for function in syntax.functions]
    return {function.name: function for function in (*own, *others)}


@cache
def replaced() -> Mapping[str, syntaxes.ReplacedCall]:
    """Return the functions that other syntaxes translate to HOT."""
    return {name: call for syntax in syntaxes.load() for name, call in syntax.replaced.items()}


@cache
def call_names() -> frozenset[str]:
    """The names whose single-key maps are calls in any version of HOT."""
    return frozenset(all_functions()) | frozenset(replaced())


def known_in(version: str) -> frozenset[str]:
    """The names whose single-key maps are calls in templates of this version."""
    syntax = syntaxes.of_version(version)
    return call_names() if syntax is None else syntax.calls


def lookup(name: str, version: str) -> Function:
    """Find a function by its known name. Raises InvalidTemplateVersion if this version, or Stoker, lacks it."""
    function = all_functions().get(name)
    if function and syntaxes.of_version(version):
        return function
    since, until = (function.since, function.until) if function else ("", replaced()[name].until or "")
    if version < since:
        raise InvalidTemplateVersion(f"'{name}' is not supported in template version {version}, only from {since}")
    if until is not None and version >= until:
        before = f"before {until}" if until else "in CloudFormation's syntax"
        raise InvalidTemplateVersion(f"'{name}' is not supported in template version {version}, only {before}")
    if function is None:
        # The parser has translated all such calls of a template, so this call comes from another source.
        raise InvalidTemplateVersion(f"'{name}' is not supported outside of a template's own text")
    return function


def functions_of(version: str) -> dict[str, str]:
    """Name and description of each function of a version."""
    if syntax := syntaxes.of_version(version):
        own = {function.name: function.description for function in syntax.functions}
        return own | {name: call.description for name, call in syntax.replaced.items()}
    own = {name: function.description for name, function in all_functions().items() if function.is_in(version)}
    return own | {name: call.description for name, call in replaced().items() if version < (call.until or "")}


class _Refused(Function):
    """A function that a version lacks."""

    def __init__(self, error: InvalidTemplateVersion) -> None:
        self._error = error

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        raise InvalidTemplateVersion(self._error.message)


@cache
def evaluators(version: str) -> dict[str, Function]:
    """The function of each known name. Functions that this version lacks raise InvalidTemplateVersion when called."""
    return {name: _find(name, version) for name in known_in(version)}


def _find(name: str, version: str) -> Function:
    try:
        return lookup(name, version)
    except InvalidTemplateVersion as error:
        return _Refused(error)
