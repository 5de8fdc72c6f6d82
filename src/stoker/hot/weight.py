"""
How much a value amounts to when it is written out: one for each part of it, and its letters.

Values share their parts, so a short template can stand for terabytes: a long file or parameter named many times,
replacements inside replacements. Weighing stops at the limit, and comes before anything is written out.
"""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import UNKNOWN
from stoker.model.errors import StackValidationFailed

#: The most that one resource or one output may amount to.
MAX_WEIGHT = 4_194_304


def weigh(root: Any, limit: int = MAX_WEIGHT) -> tuple[int, bool]:
    """
    The weight of a value, and whether UNKNOWN is anywhere in it. Raises when it is over ``limit``.

    Values from running resources may be of any depth, so this does not recurse.
    """
    weight, unknown = 0, False
    pending: list[Any] = [root]
    while pending:
        value = pending.pop()
        kind = type(value)
        if kind is str:
            weight += len(value)
        elif kind is dict:
            weight += len(value) + sum(map(len, value))
            pending += value.values()
        elif kind is list:
            weight += len(value)
            pending += value
        elif value is UNKNOWN:
            unknown = True
        if weight > limit:
            raise StackValidationFailed(f"the value would be too large: more than {MAX_WEIGHT} characters")
    return weight, unknown
