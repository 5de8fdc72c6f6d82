"""
The functions of the language, one file each, found by looking into this folder.

A file has ``NAME``, ``SINCE`` (the first version that has it), perhaps ``UNTIL`` (the first that has it no more), and
``evaluate(argument, scope)``, which gets its argument evaluated. It may have ``check(argument, version)``, which sees
the argument as written and raises when it can never work, and ``references``, ``parameters`` and ``files``, which name
the resources, parameters and files that a call as written uses.
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
    """The function judges its argument when it is evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
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
    found = (Function.of(importlib.import_module(f"{__name__}.{name}")) for name in names)
    return {function.name: function for function in found}


FUNCTIONS = _load()
#: Every single-key map with one of these keys is a call, in any version of HOT.
KNOWN = frozenset(FUNCTIONS) | frozenset(FOREIGN)
#: What calls in CloudFormation's syntax are once they are rewritten; other names are data there.
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
    """The function of a known name. Raises InvalidTemplateVersion when this version, or Stoker, lacks it."""
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
        # The reader rewrites those of a template; this one came from somewhere else.
        raise InvalidTemplateVersion(f"'{name}' is not supported outside of a template's own text")
    return function


def functions_of(version: str) -> dict[str, str]:
    """The functions of a version, with what each is for."""
    if version in CFN_VERSIONS:
        own = {name: function.description for name, function in FUNCTIONS.items() if name.startswith("Fn::")}
        return own | {name: each.description for name, each in FOREIGN.items()}
    return {
        name: function.description
        for name, function in FUNCTIONS.items()
        if function.since <= version and not (function.until is not None and version >= function.until)
    } | {name: each.description for name, each in FOREIGN.items() if version < (each.until or "")}


@cache
def evaluators(version: str) -> dict[str, Evaluate]:
    """Every known name with what to call for it; a name that this version lacks raises when called."""
    return {name: _evaluator(name, version) for name in known_in(version)}


def _evaluator(name: str, version: str) -> Evaluate:
    try:
        return lookup(name, version).evaluate
    except InvalidTemplateVersion as error:
        sentence = error.message

    def refuse(_argument: Any, _scope: Scope) -> Any:
        raise InvalidTemplateVersion(sentence)

    return refuse
