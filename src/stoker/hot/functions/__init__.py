"""
The template language's functions: one module each, discovered in this package.

A module defines ``NAME``, ``SINCE`` (the first version with the function) and ``evaluate(argument, scope)``, which gets
the evaluated argument. The first line of its docstring is the function's description. Optional are:

- ``UNTIL``: the first version without the function;
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from stoker.hot.functions._foreign import FOREIGN
from stoker.hot.scope import Scope
from stoker.hot.versions import CFN_VERSIONS
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
            evaluate=module.evaluate,
            check=getattr(module, "check", _no_check),
            references=getattr(module, "references", _none),
            parameters=getattr(module, "parameters", _none),
            files=getattr(module, "files", _none),
        )


def _load() -> dict[str, Function]:
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    functions = (Function.of(importlib.import_module(f"{__name__}.{name}")) for name in names)
    return {function.name: function for function in functions}


FUNCTIONS = _load()
#: A map whose single key is one of these is a call, in any version of HOT.
KNOWN = frozenset(FUNCTIONS) | frozenset(FOREIGN)
#: The names of calls in CloudFormation templates after their translation; other names are data there.
_CFN = frozenset(
    (
        "get_param",
        "get_resource",
        "get_attr",
        "list_join",
        "str_replace",
        "resource_facade",
        "Fn::FindInMap",
        "Fn::MemberListToMap",
        "Fn::Select",
        "Fn::Split",
    )
)


def known_in(version: str) -> frozenset[str]:
    """The names whose single-key maps are calls in templates of this version."""
    return _CFN if version in CFN_VERSIONS else KNOWN


def lookup(name: str, version: str) -> Function:
    """Find a function by its known name. Raises InvalidTemplateVersion if this version, or Stoker, lacks it."""
    function = FUNCTIONS.get(name)
    if function and version in CFN_VERSIONS:
        return function
    since, until = (function.since, function.until) if function else ("", FOREIGN[name].until or "")
    if version < since:
        raise InvalidTemplateVersion(f"'{name}' is not supported in template version {version}, only from {since}")
    if until is not None and version >= until:
        before = f"before {until}" if until else "in CloudFormation's syntax"
        raise InvalidTemplateVersion(f"'{name}' is not supported in template version {version}, only {before}")
    if function is None:
        # The parser has translated all foreign calls of a template, so this call comes from another source.
        raise InvalidTemplateVersion(f"'{name}' is not supported outside of a template's own text")
    return function


def functions_of(version: str) -> dict[str, str]:
    """Name and description of each function of a version."""
    if version in CFN_VERSIONS:
        own = {name: function.description for name, function in FUNCTIONS.items() if name.startswith("Fn::")}
        return own | {name: foreign.description for name, foreign in FOREIGN.items()}
    return {
        name: function.description
        for name, function in FUNCTIONS.items()
        if function.since <= version and not (function.until is not None and version >= function.until)
    } | {name: foreign.description for name, foreign in FOREIGN.items() if version < (foreign.until or "")}


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
