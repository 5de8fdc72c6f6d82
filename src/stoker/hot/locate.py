"""
Find the line of a place in a template's text.

Nothing remembers lines while reading: only after an error is the text walked again, event by event and only as
far as the place, so a good template pays nothing and a deep one cannot exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def at(source: str | Mapping[str, Any] | None, path: Sequence[str | int]) -> str:
    """`` (line 14)`` of the deepest part of ``path`` that the text has; nothing when it has none or is no text."""
    if not isinstance(source, str):
        return ""
    try:
        line = _line(iter(yaml.parse(source, Loader=yaml.CSafeLoader)), path)
    except (yaml.YAMLError, UnicodeError):
        return ""
    return f" (line {line})" if line else ""


def _line(events: Iterator[Event], path: Sequence[str | int]) -> int | None:
    line = None
    node: Event | None = next(
        (event for event in events if isinstance(event, (*_OPENING, ScalarEvent, AliasEvent))), None
    )
    for part in path:
        found = _enter(events, node, part)
        if found is None:
            break
        mark, node = found
        line = mark.start_mark.line + 1 if mark.start_mark else None
    return line


def _enter(events: Iterator[Event], node: Event | None, part: str | int) -> tuple[Event, Event] | None:
    """The event that marks ``part`` (a map's key, a list's item) and the one that begins its value."""
    if isinstance(node, MappingStartEvent):
        return _entry(events, str(part))
    if isinstance(node, SequenceStartEvent) and isinstance(part, int):
        return _item(events, part)
    return None


def _entry(events: Iterator[Event], name: str) -> tuple[Event, Event] | None:
    for key in events:
        if isinstance(key, MappingEndEvent):
            break
        _skip(events, key)
        value = next(events)
        if isinstance(key, ScalarEvent) and key.value == name:
            return key, value
        _skip(events, value)
    return None


def _item(events: Iterator[Event], index: int) -> tuple[Event, Event] | None:
    for item in events:
        if isinstance(item, SequenceEndEvent):
            break
        if index == 0:
            return item, item
        index -= 1
        _skip(events, item)
    return None


def _skip(events: Iterator[Event], node: Event) -> None:
    """Read past a node of which only the first event was read."""
    depth = int(isinstance(node, _OPENING))
    while depth:
        event = next(events)
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
