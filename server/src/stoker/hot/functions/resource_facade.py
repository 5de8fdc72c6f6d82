"""``{resource_facade: metadata}``: in a nested template, what the resource that it is has been given."""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import Scope
from stoker.hot.words import quote_word
from stoker.model.errors import StackValidationFailed

NAME = "resource_facade"
SINCE = "2013-05-23"

_PARTS = ("metadata", "deletion_policy", "update_policy")


def check(argument: Any, _version: str) -> None:
    if argument not in _PARTS:
        raise StackValidationFailed(f'"resource_facade" needs one of {", ".join(_PARTS)}, not {quote_word(argument)}')


def evaluate(argument: Any, scope: Scope) -> Any:
    check(argument, scope.version)
    return scope.facade(argument)
