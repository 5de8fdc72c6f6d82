"""``{get_resource: name}``: the id of another resource, which is then created first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "get_resource"
SINCE = "2013-05-23"


def check(argument: Any, _version: str) -> None:
    # A computed name would hide the dependency.
    if not isinstance(argument, str):
        raise StackValidationFailed('"get_resource" needs the name of a resource')


def references(argument: Any) -> Iterable[str]:
    return (argument,) if isinstance(argument, str) else ()


def evaluate(argument: Any, scope: Scope) -> Any:
    check(argument, scope.version)
    return scope.resource_id(argument)
