"""
Data inside of templates that Stoker itself writes, such as a group's.

Its values were evaluated where the group stands. What they hold is data for good, also where it looks like a call.
"""

from __future__ import annotations

from typing import Any, Final

from stoker.hot.functions import KNOWN

#: A map with this single key is its value, which nothing looks into.
LITERAL: Final = "Stoker::Data"
_MISLEADING = KNOWN | {"if", LITERAL}


def literal(value: Any) -> Any:
    """``value``, in such a map when anything in it looks like a call."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if len(each) == 1 and not _MISLEADING.isdisjoint(each):
                return {LITERAL: value}
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return value


def is_literal(value: dict[str, Any]) -> bool:
    return len(value) == 1 and LITERAL in value
