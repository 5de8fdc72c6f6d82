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
#: Above what a template or a signal can have, and well below where whatever goes through it by recursion ends.
MAX_LEVELS = 250


def weigh(root: Any, limit: int = MAX_WEIGHT) -> tuple[int, bool]:
    """
    The weight of a value, and whether UNKNOWN is anywhere in it. Raises when it is over ``limit``, or too deep.

    Level by level: values of running resources, put into each other, may have become of any depth.
    """
    weight, unknown, levels = 0, False, 0
    level: list[Any] = [root]
    while level:
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                weight += len(value)
            elif kind is dict:
                weight += len(value) + sum(map(len, value))
                below += value.values()
            elif kind is list:
                weight += len(value)
                below += value
            elif value is UNKNOWN:
                unknown = True
            if weight > limit:
                raise StackValidationFailed(f"the value would be too large: more than {MAX_WEIGHT} characters")
        levels += 1
        if levels > MAX_LEVELS:
            raise StackValidationFailed(f"the value cannot be written as JSON: it has more than {MAX_LEVELS} levels")
        level = below
    return weight, unknown
