"""
Dependencies between resources that no function of the template states, as Heat adds them. Pure functions.

The types state them (``ResourceType.implied``): the address of a port, for example, needs a subnet of its network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot import UNKNOWN

#: A resource reference in a form that can be compared: the known value, or the function in JSON.
Ref = str


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource of a template: its type, its properties as written, and as far as they are known."""

    type: str
    source: Any
    values: Mapping[str, Any]

    def ref(self, *names: str) -> Ref | None:
        """Return the first of the properties that is set, for a comparison."""
        for name in names:
            value = self.values.get(name)
            if value is UNKNOWN:
                return _to_ref(self.source.get(name)) if isinstance(self.source, Mapping) else None
            if value is not None:
                return _to_ref(value)
        return None

    def entries(self, name: str) -> Iterator[PlannedResource]:
        """Yield the maps of a list property."""
        values, source = self.values.get(name), self.source.get(name) if isinstance(self.source, Mapping) else None
        if not isinstance(values, list):
            return
        sources = source if isinstance(source, list) and len(source) == len(values) else [None] * len(values)
        for value, written in zip(values, sources, strict=True):
            if isinstance(value, Mapping):
                yield PlannedResource("", written, value)


def without_cycles(stated: Mapping[str, frozenset[str]], implied: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the implied dependencies that do not contradict the template's."""
    needs = {name: set(others) for name, others in stated.items()}
    kept: dict[str, set[str]] = {}
    for name, others in implied.items():
        for other in sorted(others - needs[name]):
            if not _reaches(needs, other, name):
                needs[name].add(other)
                kept.setdefault(name, set()).add(other)
    return kept


def _reaches(needs: Mapping[str, set[str]], start: str, end: str) -> bool:
    todo, seen = [start], {start}
    while todo:
        name = todo.pop()
        if name == end:
            return True
        new = needs.get(name, set()) - seen
        seen |= new
        todo.extend(new)
    return False


def _to_ref(value: Any) -> Ref | None:
    return None if value is None else json.dumps(value, sort_keys=True, default=str)
