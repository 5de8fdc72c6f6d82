"""``{str_replace_strict: {template, params}}``: as ``str_replace``, and every word must be in the text."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions import str_replace
from stoker.hot.functions.str_replace import check, must_occur
from stoker.hot.scope import Scope

NAME = "str_replace_strict"
SINCE = "2017-02-24"

__all__ = ["NAME", "SINCE", "check", "evaluate"]


def evaluate(argument: Any, scope: Scope) -> str:
    text = str_replace.evaluate(argument, scope)
    must_occur(NAME, argument)
    return text
