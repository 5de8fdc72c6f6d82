"""Server-sent events out of bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker_client.errors import BadAnswer
from stoker_client.updates import Event, Parser

STREAM = (
    b"retry: 250\n\n"
    b": a comment\n:\n"
    b"id: 7\nevent: log\ndata: one\ndata:two\r\n\r\n"
    b"data:  a space stays\n\n"
    b"event: empty\n\n"
    b"id\ndata\n\n"
    b"event: gr\xc3\xbc\xc3\x9fe\nid: 9\nunknown: field\ndata: \xe2\x82\xac\r\n\n"
    b"id: 10\ndata: half"
)
EVENTS = [
    Event("log", "one\ntwo"),
    Event("message", " a space stays"),
    Event("message", ""),
    Event("grüße", "€"),
]


def parsed(*pieces: bytes) -> tuple[list[Event], Parser]:
    parser = Parser()
    return [event for piece in pieces for event in parser.feed(piece)], parser


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
@example(list(range(len(STREAM))))
def test_events_do_not_depend_on_chunk_borders(cuts):
    ends = [0, *sorted(cuts), len(STREAM)]
    events, parser = parsed(*(STREAM[start:end] for start, end in pairwise(ends)))

    assert events == EVENTS
    assert (parser.last_id, parser.retry) == ("9", 0.25)


@given(st.lists(st.binary(max_size=40), max_size=10))
@example([b"retry: soon\n\n"])
def test_invalid_lines_are_ignored(pieces):
    parsed(*pieces)


def test_data_must_be_json():
    assert Event("x", '{"a": 1}').json() == {"a": 1}
    with pytest.raises(BadAnswer, match="'x' is no JSON object"):
        Event("x", "{").json()
