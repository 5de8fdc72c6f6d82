"""``{list_join: [delimiter, list, list, …]}``: the items of all lists with the delimiter between them."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._texts import as_json, check_length, is_call
from stoker.hot.scope import Scope
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed

NAME = "list_join"
SINCE = "2013-05-23"

#: From this version on, several lists are allowed, and maps and lists as items.
_MANY = "2015-10-15"


def check(argument: Any, version: str) -> None:
    if not isinstance(argument, list) or len(argument) < 2:
        raise StackValidationFailed('"list_join" needs a list: a delimiter and at least one list')
    if len(argument) > 2 and version < _MANY:
        raise StackValidationFailed(f'"list_join" takes several lists only from version {_MANY}')
    for part in argument[1:]:
        if not _is_nothing(part, version) and not isinstance(part, list) and not is_call(part):
            raise StackValidationFailed(f'"list_join" joins lists, not {kind_of(part)}')


def evaluate(argument: Any, scope: Scope) -> str:
    check(argument, scope.version)
    delimiter, *lists = argument
    if not isinstance(delimiter, str):
        raise StackValidationFailed(f'"list_join" delimiter must be text, not {kind_of(delimiter)}')
    texts = [_text(item, scope.version) for items in lists for item in _list(items, scope.version)]
    check_length(NAME, sum(map(len, texts)) + len(delimiter) * len(texts))
    return delimiter.join(texts)


def _list(value: Any, version: str) -> list[Any]:
    if _is_nothing(value, version):
        return []
    if not isinstance(value, list):
        raise StackValidationFailed(f'"list_join" joins lists, not {kind_of(value)}')
    return value


def _is_nothing(value: Any, version: str) -> bool:
    # In a json parameter, empty text means no value.
    return value is None or (value == "" and version >= _MANY)


def _text(item: Any, version: str) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if version >= _MANY and isinstance(item, (dict, list)):
        return as_json(NAME, item)
    allowed = "text, maps or lists" if version >= _MANY else "text"
    raise StackValidationFailed(f'"list_join": items must be {allowed}, not {kind_of(item)}')
