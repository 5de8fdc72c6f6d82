"""
The weight of a value: one for each part, and one for each character.

Values share their parts, so a short template can describe terabytes: a long file or parameter that is used many times,
or nested replacements. Weighing stops at the limit, and happens before anything is expanded.
"""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import UNKNOWN
from stoker.model.errors import StackValidationFailed

#: Maximum weight of one resource or one output.
MAX_WEIGHT = 4_194_304
#: Maximum depth: more than a template or a signal can have, and well below Python's recursion limit.
MAX_LEVELS = 250


def weigh(root: Any, limit: int = MAX_WEIGHT) -> tuple[int, bool]:
    """
    Return the weight of a value, and whether it contains UNKNOWN. Raises if it is heavier than ``limit`` or too deep.
    Does not recurse: values of running resources, inserted into each other, can have any depth.
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
