"""
Finds the lines of paths in a template's text.

The parser does not record lines. Only after an error, this module reads the text again as events, once for all paths:
valid templates cost nothing, and deeply nested text cannot exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml
from yaml import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

_OPENING = (MappingStartEvent, SequenceStartEvent)
_CLOSING = (MappingEndEvent, SequenceEndEvent)


class _AllFound(Exception):
    """All wanted paths have been found."""


class _Place:
    """A part of a wanted path, and the parts that may follow."""

    __slots__ = ("line", "parts")

    def __init__(self) -> None:
        self.line: int | None = None
        self.parts: dict[str | int, _Place] = {}


class _Open:
    """A map or list that is being read, and the position in it."""

    __slots__ = ("index", "is_map", "key", "place")

    def __init__(self, event: Event, place: _Place | None) -> None:
        self.is_map = isinstance(event, MappingStartEvent)
        self.place = place
        self.index = 0
        #: In a map, the place of the next value; False if a key comes next.
        self.key: _Place | bool | None = False


def at(source: str | Mapping[str, Any] | None, path: Sequence[str | int]) -> str:
    """`` (line 14)`` for the deepest part of ``path`` in the text; empty if there is none or ``source`` is not text."""
    line = lines(source, [tuple(path)]).get(tuple(path)) if isinstance(source, str) else None
    return f" (line {line})" if line else ""


def lines(source: str, paths: Iterable[tuple[str | int, ...]]) -> dict[tuple[str | int, ...], int]:
    """The line of the deepest part of each path in the text, found in one pass; paths without any part are omitted."""
    root, wanted = _Place(), [path for path in paths if path]
    for path in wanted:
        place = root
        for part in path:
            place = place.parts.setdefault(part, _Place())
    if wanted:
        with suppress(yaml.YAMLError, UnicodeError, _AllFound):
            _Reading(len({path[:length] for path in wanted for length in range(1, len(path) + 1)})).read(source, root)
    located = {path: _deepest(root, path) for path in wanted}
    return {path: line for path, line in located.items() if line is not None}


def _deepest(root: _Place, path: Sequence[str | int]) -> int | None:
    line, place = None, root
    for part in path:
        place = place.parts[part]
        if place.line is None:
            break
        line = place.line
    return line


class _Reading:
    def __init__(self, left: int) -> None:
        """``left``: number of places without a line."""
        self._left = left
        self._within: list[_Open] = []

    def read(self, source: str, root: _Place) -> None:
        """
        Set the line of each place. Raises _AllFound when no place is left.

        Does not recurse, because the text may be nested as deeply as its size allows.
        """
        for event in yaml.parse(source, Loader=yaml.CSafeLoader):
            if isinstance(event, _CLOSING):
                self._within.pop()
                self._end()
            elif isinstance(event, _OPENING):
                self._within.append(_Open(event, self._place_of(event, root)))
            elif isinstance(event, (ScalarEvent, AliasEvent)):
                self._place_of(event, root)
                self._end(event)

    def _place_of(self, event: Event, root: _Place) -> _Place | None:
        """The place of a value; None for keys and for values that are not wanted."""
        if not self._within:
            return root
        around = self._within[-1]
        if around.is_map:
            return around.key if isinstance(around.key, _Place) else None
        place = around.place.parts.get(around.index) if around.place else None
        self._mark(place, event)
        return place

    def _end(self, scalar: Event | None = None) -> None:
        """Handle the end of a key, a value or an item."""
        if not self._within:
            return
        around = self._within[-1]
        if not around.is_map:
            around.index += 1
        elif around.key is not False:
            around.key = False
        else:
            name = scalar.value if isinstance(scalar, ScalarEvent) else None
            place = around.place.parts.get(name) if around.place and name is not None else None
            if place is not None and place.line is not None:
                place = None  # a duplicate key: the first one counts
            around.key = place
            if scalar is not None:
                self._mark(place, scalar)

    def _mark(self, place: _Place | None, event: Event) -> None:
        if place is not None and event.start_mark:
            place.line = event.start_mark.line + 1
            self._left -= 1
            if self._left == 0:
                raise _AllFound
