"""``{"Fn::FindInMap": [mapping, key, key]}``: a value of the section Mappings, which the reader has put in place."""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import Scope
from stoker.hot.words import quote_word
from stoker.model.errors import StackValidationFailed

NAME = "Fn::FindInMap"
SINCE = ""
CONDITION_SINCE = ""
#: No version of HOT has the function.
UNTIL = ""


def evaluate(argument: Any, _scope: Scope) -> Any:
    value, *keys = argument
    for key in keys:
        if not isinstance(key, str) or not isinstance(value, dict) or key not in value:
            raise StackValidationFailed(f'"Fn::FindInMap": the mapping has no {quote_word(key)}')
        value = value[key]
    return value
