"""``{list_concat_unique: [list, list, …]}``: all items of all lists, each as often as once."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._lists import check_lists, concatenate
from stoker.hot.functions._texts import as_json
from stoker.hot.scope import Scope

NAME = "list_concat_unique"
SINCE = "2017-09-01"


def check(argument: Any, _version: str) -> None:
    check_lists(NAME, argument)


def evaluate(argument: Any, _scope: Scope) -> list[Any]:
    # Compared as JSON, because maps and lists are not hashable; JSON also distinguishes 1 from true.
    return list({as_json(NAME, item): item for item in reversed(concatenate(NAME, argument))}.values())[::-1]
