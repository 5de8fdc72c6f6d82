"""
The template language's functions: one module each, discovered in this package, or of another syntax (``syntaxes``).

A module defines ``NAME``, ``SINCE`` (the first version with the function) and ``evaluate(argument, scope)``, which gets
the evaluated argument. The first line of its docstring is the function's description. Optional are:

- ``UNTIL``: the first version without the function;
- ``CONDITION_SINCE``: the first version whose conditions may call the function;
- ``check(argument, version)``: gets the unevaluated argument and raises if it can never work;
- ``references``, ``parameters`` and ``files``: return the names that an unevaluated call uses.

For example, the module ``upper.py``::

    NAME = "upper"
    SINCE = "2021-04-16"

    def evaluate(argument: Any, _scope: Scope) -> str:
        return str(argument).upper()
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from stoker.hot import syntaxes
from stoker.hot.scope import Scope
from stoker.model.errors import InvalidTemplateVersion

Evaluate = Callable[[Any, Scope], Any]
Names = Callable[[Any], Iterable[str]]


def _none(_argument: Any) -> Iterable[str]:
    return ()


def _no_check(_argument: Any, _version: str) -> None:
    """The default: the function checks its argument during evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of the template language, described by the attributes of its module."""

    name: str
    description: str
    since: str
    until: str | None
    condition_since: str | None
    evaluate: Evaluate
    check: Callable[[Any, str], None]
    references: Names
    parameters: Names
    files: Names

    @classmethod
    def of(cls, module: ModuleType) -> Function:
        """Build a function from its module."""
        return cls(
            name=module.NAME,
            description=(module.__doc__ or "").strip().partition("\n")[0],
            since=module.SINCE,
            until=getattr(module, "UNTIL", None),
            condition_since=getattr(module, "CONDITION_SINCE", None),
            evaluate=module.evaluate,
            check=getattr(module, "check", _no_check),
            references=getattr(module, "references", _none),
            parameters=getattr(module, "parameters", _none),
            files=getattr(module, "files", _none),
        )


@cache
def all_functions() -> Mapping[str, Function]:
    """Return the functions of HOT and of other syntaxes by name."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    modules += [module for syntax in syntaxes.load() for module in syntax.functions]
    return {function.name: function for function in map(Function.of, modules)}


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
        own = {function.name: function.description for function in map(Function.of, syntax.functions)}
        return own | {name: call.description for name, call in syntax.replaced.items()}
    return {
        name: function.description
        for name, function in all_functions().items()
        if function.since <= version and not (function.until is not None and version >= function.until)
    } | {name: call.description for name, call in replaced().items() if version < (call.until or "")}


@cache
def evaluators(version: str) -> dict[str, Evaluate]:
    """The implementation of each known name. Names that this version lacks raise InvalidTemplateVersion when called."""
    return {name: _evaluator(name, version) for name in known_in(version)}


def _evaluator(name: str, version: str) -> Evaluate:
    try:
        return lookup(name, version).evaluate
    except InvalidTemplateVersion as error:
        sentence = error.message

    def refuse(_argument: Any, _scope: Scope) -> Any:
        raise InvalidTemplateVersion(sentence)

    return refuse
