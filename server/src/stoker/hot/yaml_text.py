"""
Parses YAML text to plain data in one pass over libyaml's events, and finds the lines of its parts.

``yaml.load`` composes nodes and then constructs objects. It takes twice the time, recurses as deep as the text, expands
aliases without a limit, and lets the last of two equal keys win. Building from events limits the depth before deeper
parts are read, counts the size of aliases without expanding them (they share one object), and knows all lines. Data has
no room for lines, so the text is read again after an error: valid templates cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from stoker.hot import scalars
from stoker.hot.scalars import MAX_DEPTH, describe_key, text_problem

#: The text may be any data, not only a template.
_ANY_WEIGHT = 2**63
#: Markers for "no key read yet" and for the merge key.
_NONE: Any = object()
_MERGE: Any = object()


class Unreadable(Exception):
    """The text is not valid; ``line`` counts from 1."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem, line)
        self.problem = problem
        self.line = line


@dataclass(slots=True)
class _Place:
    """A part of a path whose line is wanted, and the parts that may follow."""

    line: int | None = None
    parts: dict[str | int, _Place] = field(default_factory=dict)


def lines(source: str, paths: Iterable[tuple[str | int, ...]]) -> dict[tuple[str | int, ...], int]:
    """The line of the deepest part of each path in the text, found in one pass; paths without any part are omitted."""
    root, wanted = _Place(), [path for path in paths if path]
    for path in wanted:
        place = root
        for part in path:
            place = place.parts.setdefault(part, _Place())
    if wanted:
        with suppress(Unreadable, UnicodeError):
            _load(source, _ANY_WEIGHT, root)
    located = {path: _deepest(root, path) for path in wanted}
    return {path: line for path, line in located.items() if line is not None}


def _deepest(place: _Place, path: Sequence[str | int]) -> int | None:
    line = None
    for part in path:
        place = place.parts[part]
        if place.line is None:
            break
        line = place.line
    return line


def load(text: str, max_weight: int) -> Any:
    """Return the document of ``text``, None if empty, within a weight with aliases expanded. Raises Unreadable."""
    return _load(text, max_weight, None)


def _load(text: str, max_weight: int, root: _Place | None) -> Any:
    _refuse_tag_directives(text)
    builder = _Builder(max_weight, root)
    try:
        builder.run(yaml.CSafeLoader(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = (error.context, error.problem)
        raise Unreadable(", ".join(word for word in words if word), mark.line + 1 if mark else 1) from None
    except yaml.reader.ReaderError:
        odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
        line = text.count("\n", 0, odd.start()) + 1 if odd else 1
        raise Unreadable("control characters are not allowed", line) from None
    return builder.root


def _refuse_tag_directives(text: str) -> None:
    """Refuse %TAG directives: libyaml compares each with all others, which takes seconds for many of them."""
    start = 0 if text.startswith("%TAG") else text.find("\n%TAG") + 1
    if start or text.startswith("%TAG"):
        raise Unreadable("%TAG directives are not supported", text.count("\n", 0, start) + 1)


@dataclass(slots=True)
class _Open:
    """A list or map that is being read."""

    value: Any
    anchor: str | None
    #: The weight of the document before this value.
    weight: int
    #: None if no line inside is wanted.
    place: _Place | None
    key: Any = _NONE
    merged: list[dict[str, Any]] | None = None


class _Builder:
    def __init__(self, max_weight: int, place: _Place | None) -> None:
        self.root: Any = None
        self._root_place = place
        self._max_weight = max_weight
        #: One for each value and each of its characters, counted again for each alias.
        self._weight = 0
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._words: dict[str, Any] = {}
        self._documents = 0
        self._handlers = {
            ScalarEvent: self._scalar,
            MappingStartEvent: self._start,
            SequenceStartEvent: self._start,
            MappingEndEvent: self._end,
            SequenceEndEvent: self._end,
            AliasEvent: self._alias,
            DocumentStartEvent: self._document,
        }

    def run(self, loader: yaml.CSafeLoader) -> None:
        next_event, handlers = loader.get_event, self._handlers
        while True:
            event = next_event()
            handler = handlers.get(type(event))
            if handler:
                handler(event)
            elif type(event) is StreamEndEvent:
                return

    def _document(self, event: Event) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _wrong("one document is expected, here begins another", event)

    def _scalar(self, event: Any) -> None:
        text = event.value
        self._weight += 1 + len(text)
        if event.tag is None and event.implicit[0]:
            if text[:1] not in scalars.FIRST_LETTERS:
                value = text
            elif text == "<<" and self._at_key():
                value = _MERGE
            else:
                value = self._word(text, event)
        else:
            value = self._quoted_or_tagged(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (text if value is _MERGE else value, 1 + len(text))
        self._add(value, event)

    def _at_key(self) -> bool:
        return bool(self._stack) and type(self._stack[-1].value) is dict and self._stack[-1].key is _NONE

    def _word(self, text: str, event: Any) -> Any:
        value = self._words.get(text, _NONE)
        if value is _NONE:
            try:
                value = self._words[text] = scalars.plain(text)
            except ValueError as error:
                raise _wrong(str(error), event) from None
        return value

    def _quoted_or_tagged(self, event: Any) -> Any:
        # Only an escape sequence in double quotes can produce text that the reader refuses.
        problem = text_problem(event.value)
        if problem:
            raise _wrong(problem, event)
        if event.tag is None:
            return event.value
        try:
            return scalars.parse_tagged(event.tag, event.value)
        except ValueError as error:
            raise _wrong(str(error), event) from None

    def _start(self, event: Any) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise _wrong(f"nested too deeply (more than {MAX_DEPTH} levels)", event)
        is_map = type(event) is MappingStartEvent
        if event.tag is not None:
            try:
                scalars.check_container(event.tag, "map" if is_map else "seq")
            except ValueError as error:
                raise _wrong(str(error), event) from None
        self._stack.append(_Open({} if is_map else [], event.anchor, self._weight, self._place_of(event)))
        self._weight += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = None

    def _place_of(self, event: Any) -> _Place | None:
        if not self._stack:
            return self._root_place
        top = self._stack[-1]
        if type(top.value) is list:
            return _mark(top, len(top.value), event)
        return top.place.parts.get(top.key) if top.place is not None else None

    def _end(self, event: Event) -> None:
        done = self._stack.pop()
        value = done.value
        if done.merged:
            value = {name: item for source in reversed(done.merged) for name, item in source.items()} | value
        if done.anchor is not None:
            self._anchors[done.anchor] = (value, self._weight - done.weight)
        self._add(value, event)

    def _alias(self, event: Any) -> None:
        anchor = self._anchors.get(event.anchor, _NONE)
        if anchor is _NONE:
            raise _wrong(f'no anchor "{event.anchor}" comes before this', event)
        if anchor is None:
            raise _wrong(f'the anchor "{event.anchor}" contains itself', event)
        value, weight = anchor
        self._weight += weight
        if self._weight > self._max_weight:
            raise _wrong("aliases repeat too much", event)
        self._add(value, event)

    def _add(self, value: Any, event: Event) -> None:
        if not self._stack:
            self.root = value
            return
        top = self._stack[-1]
        if type(top.value) is list:
            _mark(top, len(top.value), event)
            top.value.append(value)
        elif top.key is _NONE:
            _take_key(top, value, event)
        elif top.key is _MERGE:
            top.merged = _merge_sources(value, event)
            top.key = _NONE
        else:
            top.value[top.key] = value
            top.key = _NONE


def _mark(top: _Open, part: str | int, event: Event) -> _Place | None:
    """Store the line of a part of a map or list if it is wanted, and return its place."""
    place = top.place.parts.get(part) if top.place is not None else None
    if place is not None and place.line is None and event.start_mark:
        place.line = event.start_mark.line + 1
    return place


def _take_key(top: _Open, key: Any, event: Event) -> None:
    if key is _MERGE:
        if top.merged is not None:
            raise _wrong('duplicate key "<<"', event)
    elif type(key) is not str:
        raise _wrong(f"keys must be text, not {describe_key(key)}", event)
    elif key in top.value:
        raise _wrong(f'duplicate key "{key}"', event)
    else:
        _mark(top, key, event)
    top.key = key


def _merge_sources(value: Any, event: Event) -> list[dict[str, Any]]:
    sources = value if type(value) is list else [value]
    if not all(type(source) is dict for source in sources):
        raise _wrong('"<<" merges maps only', event)
    return sources


def _wrong(problem: str, event: Event) -> Unreadable:
    mark = event.start_mark
    return Unreadable(problem, mark.line + 1 if mark else 1)
