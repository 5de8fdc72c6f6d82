"""``{get_attr: [resource, attribute, key, index, …]}``: an attribute of another resource, or a part of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.paths import select
from stoker.hot.scope import ALL_ATTRIBUTES, UNKNOWN, Scope
from stoker.model.errors import StackValidationFailed

NAME = "get_attr"
SINCE = "2013-05-23"

#: From the first version on, the resource itself resolves the path; from the second, a resource without an attribute
#: means all its attributes.
_PATH_TO_RESOURCE = "2014-10-16"
_ALL_ATTRIBUTES = "2015-10-15"


def check(argument: Any, version: str) -> None:
    needed = 1 if version >= _ALL_ATTRIBUTES else 2
    if not isinstance(argument, list) or len(argument) < needed or not isinstance(argument[0], str):
        raise StackValidationFailed('"get_attr" needs a list: a resource\'s name, an attribute and perhaps a path')
    if any(not isinstance(part, str) and not is_call(part) for part in argument[1:2]):
        raise StackValidationFailed('"get_attr": the attribute\'s name must be text')


def references(argument: Any) -> Iterable[str]:
    return tuple(name for name in argument[:1] if isinstance(name, str)) if isinstance(argument, list) else ()


def evaluate(argument: Any, scope: Scope) -> Any:
    check(argument, scope.version)
    name, *rest = argument
    if not rest:
        return scope.attribute(name, ALL_ATTRIBUTES, ())
    attribute, *path = rest
    if not isinstance(attribute, str) or not attribute:
        raise StackValidationFailed('"get_attr": the attribute\'s name must be text')
    if scope.version >= _PATH_TO_RESOURCE:
        return scope.attribute(name, attribute, tuple(path))
    value = scope.attribute(name, attribute, ())
    return UNKNOWN if value is UNKNOWN else select(value, path)
