"""``{list_concat_unique: [list, list, …]}``: all items of all lists, each as often as once."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._lists import check_lists, joined
from stoker.hot.functions._texts import as_json
from stoker.hot.scope import Scope

NAME = "list_concat_unique"
SINCE = "2017-09-01"


def check(argument: Any, _version: str) -> None:
    check_lists(NAME, argument)


def evaluate(argument: Any, _scope: Scope) -> list[Any]:
    # By their JSON, as maps and lists cannot be looked up; that also tells 1 from true.
    return list({as_json(NAME, item): item for item in reversed(joined(NAME, argument))}.values())[::-1]
