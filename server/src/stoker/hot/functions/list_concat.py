"""``{list_concat: [list, list, …]}``: all items of all lists, one after the other."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._lists import check_lists, concatenate
from stoker.hot.scope import Scope

NAME = "list_concat"
SINCE = "2017-09-01"


def check(argument: Any, _version: str) -> None:
    check_lists(NAME, argument)


def evaluate(argument: Any, _scope: Scope) -> list[Any]:
    return concatenate(NAME, argument)
