"""
Literal data in templates that Stoker generates, such as those of groups.

Their values were evaluated in the group's template, so they must stay data even if they look like calls.
"""

from __future__ import annotations

from typing import Any, Final

from stoker.hot.functions import call_names

#: The single key of a map whose value is data: no code evaluates it.
LITERAL: Final = "Stoker::Data"


def literal(value: Any) -> Any:
    """Wrap ``value`` as a literal if any part of it looks like a call."""
    misleading = call_names() | {"if", LITERAL}
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if len(part) == 1 and not misleading.isdisjoint(part):
                return {LITERAL: value}
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return value


def is_literal(value: dict[str, Any]) -> bool:
    """Whether the map is a literal."""
    return len(value) == 1 and LITERAL in value
