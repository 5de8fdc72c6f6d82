"""A function for including a file inline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.scope import Scope
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed

NAME = "get_file"
SINCE = "2013-05-23"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, str) and not is_call(argument):
        raise StackValidationFailed('"get_file" needs the name of a file')


def files(argument: Any) -> Iterable[str]:
    return (argument,) if isinstance(argument, str) else ()


def evaluate(argument: Any, scope: Scope) -> Any:
    if not isinstance(argument, str):
        raise StackValidationFailed('"get_file" needs the name of a file')
    try:
        return scope.file(argument)
    except KeyError:
        sentence = f'No content found in the "files" section for get_file path: {clip(argument)}'
        raise StackValidationFailed(sentence) from None
