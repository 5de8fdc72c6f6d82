"""``{"Fn::Split": [delimiter, text]}``: the parts of a text."""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "Fn::Split"
SINCE = "2013-05-23"
UNTIL = "2014-10-16"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed('"Fn::Split" needs a list: a delimiter and a text')


def evaluate(argument: Any, scope: Scope) -> list[str]:
    check(argument, scope.version)
    delimiter, text = argument
    if not isinstance(delimiter, str) or not delimiter or not isinstance(text, str):
        raise StackValidationFailed('"Fn::Split" needs a delimiter and a text')
    return text.split(delimiter)
