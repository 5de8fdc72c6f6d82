"""``{digest: [algorithm, value]}``: the value's hash in hexadecimal digits."""

from __future__ import annotations

import hashlib
from typing import Any

from stoker.hot.scope import Scope
from stoker.hot.words import quote_word
from stoker.model.errors import StackValidationFailed

NAME = "digest"
SINCE = "2015-04-30"

#: The algorithms with a fixed digest length.
ALGORITHMS = frozenset(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake_"))


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed('"digest" needs a list: an algorithm and a value')
    if isinstance(argument[0], str) and argument[0].lower() not in ALGORITHMS:
        raise StackValidationFailed(
            f'"digest" knows no algorithm {quote_word(argument[0])}: {", ".join(sorted(ALGORITHMS))}'
        )


def evaluate(argument: Any, scope: Scope) -> str:
    check(argument, scope.version)
    algorithm, value = argument
    if not isinstance(algorithm, str) or not isinstance(value, str):
        raise StackValidationFailed('"digest" needs an algorithm and a value, both text')
    try:
        raw = value.encode("latin-1")
    except UnicodeEncodeError:
        raise StackValidationFailed('"digest": the value has characters outside of Latin-1') from None
    return hashlib.new(algorithm.lower(), raw, usedforsecurity=False).hexdigest()
