"""``{str_replace_vstrict: {template, params}}``: as ``str_replace_strict``, and no value may be empty."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions import str_replace
from stoker.hot.functions.str_replace import check, must_occur
from stoker.hot.scope import Scope
from stoker.hot.words import quote_word
from stoker.model.errors import StackValidationFailed

NAME = "str_replace_vstrict"
SINCE = "2017-09-01"

__all__ = ["NAME", "SINCE", "check", "evaluate"]


def evaluate(argument: Any, scope: Scope) -> str:
    text = str_replace.evaluate(argument, scope)
    must_occur(NAME, argument)
    for word, value in argument["params"].items():
        if value is None or value in ("", [], {}):
            raise StackValidationFailed(f'"{NAME}": the value for {quote_word(word)} is empty')
    return text
