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

from stoker.hot.functions._unbuilt import UNBUILT
from stoker.hot.scope import Scope
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
#: Every single-key map with one of these keys is a call, in any version.
KNOWN = frozenset(FUNCTIONS) | frozenset(UNBUILT)


def lookup(name: str, version: str) -> Function:
    """The function of a known name. Raises InvalidTemplateVersion when this version, or Stoker, lacks it."""
    function = FUNCTIONS.get(name)
    since, until = (function.since, function.until) if function else UNBUILT[name]
    if version < since:
        raise InvalidTemplateVersion(f"'{name}' is not supported in template version {version}, only from {since}")
    if until and version >= until:
        raise InvalidTemplateVersion(f"'{name}' is not supported in template version {version}, only before {until}")
    if not function:
        raise InvalidTemplateVersion(f"'{name}' is not supported by this version of Stoker")
    return function


def functions_of(version: str) -> dict[str, str]:
    """The functions of a version, with what each is for."""
    return {
        name: function.description
        for name, function in FUNCTIONS.items()
        if function.since <= version and not (function.until and version >= function.until)
    }


@cache
def evaluators(version: str) -> dict[str, Evaluate]:
    """Every known name with what to call for it; a name that this version lacks raises when called."""
    return {name: _evaluator(name, version) for name in KNOWN}


def _evaluator(name: str, version: str) -> Evaluate:
    try:
        return lookup(name, version).evaluate
    except InvalidTemplateVersion as error:
        sentence = error.message

    def refuse(_argument: Any, _scope: Scope) -> Any:
        raise InvalidTemplateVersion(sentence)

    return refuse
