"""Adds the catalogue entries that a request names to its files, because Heat's clients do not know the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stoker.catalog.entry import REFERENCE, SCHEME
from stoker.stacks.templates.prepare import StackRequest

#: Returns the text of the entry with this name and version, or None.
FindEntry = Callable[[str, int], str | None]


def add_entries(request: StackRequest, find: FindEntry) -> StackRequest:
    """
    Return the request with each named entry among its files, under its name in the template.

    Files of the request take precedence. Unknown entries are left to the checks of the template.
    """
    texts = [request.template, request.environment, request.files]
    entries = {}
    for reference, name, version in _references(texts):
        if reference not in entries and not (isinstance(request.files, Mapping) and reference in request.files):
            entries[reference] = find(name, version)
    present = {reference: text for reference, text in entries.items() if text is not None}
    return replace(request, files={**present, **(request.files or {})}) if present else request


def _references(value: Any) -> Iterator[tuple[str, str, int]]:
    """Yield the references in all texts of a value, which may be nested, with their names and versions."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if SCHEME in item:
                for match in REFERENCE.finditer(item):
                    yield match[0], match[1], int(match[2])
        elif isinstance(item, Mapping):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
