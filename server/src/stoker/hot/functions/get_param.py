"""``{get_param: name}`` or ``{get_param: [name, key, index, …]}``: a parameter's value, or a part of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.paths import select
from stoker.hot.scope import UNKNOWN, Scope
from stoker.model.errors import StackValidationFailed

NAME = "get_param"
SINCE = "2013-05-23"
CONDITION_SINCE = ""


def check(argument: Any, _version: str) -> None:
    name = argument[0] if isinstance(argument, list) and argument else argument
    if not isinstance(name, str) and not is_call(name):
        raise StackValidationFailed('"get_param" needs a parameter\'s name, or a list of a name and a path')


def parameters(argument: Any) -> Iterable[str]:
    name = argument[0] if isinstance(argument, list) else argument
    return (name,) if isinstance(name, str) else ()


def evaluate(argument: Any, scope: Scope) -> Any:
    if isinstance(argument, str):
        return scope.parameter(argument)
    if not isinstance(argument, list) or not argument or not isinstance(argument[0], str):
        raise StackValidationFailed('"get_param" needs a parameter\'s name, or a list of a name and a path')
    value = scope.parameter(argument[0])
    # As in Heat, a path that does not exist gives an empty text; templates rely on this.
    return UNKNOWN if value is UNKNOWN else select(value, argument[1:], missing="")
