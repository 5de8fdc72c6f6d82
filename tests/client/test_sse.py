"""Server-sent events out of bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker_client.errors import BadAnswer
from stoker_client.updates import Event, Parser

STREAM = (
    b"\xef\xbb\xbfretry: 250\n\n"
    b": a comment\n"
    b"id: 7\nevent: log\ndata: one\ndata:two\r\n\r\n"
    b"data:  a space stays\r\r"
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


def test_a_stream_is_parsed_into_events():
    events, parser = parsed(STREAM)

    assert events == EVENTS
    assert (parser.last_id, parser.retry) == ("9", 0.25)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_do_not_depend_on_chunk_borders(cuts):
    ends = [0, *sorted(cuts), len(STREAM)]
    events, parser = parsed(*(STREAM[start:end] for start, end in pairwise(ends)))

    assert events == EVENTS
    assert (parser.last_id, parser.retry) == ("9", 0.25)


def test_events_are_parsed_byte_by_byte():
    assert parsed(*(STREAM[at : at + 1] for at in range(len(STREAM))))[0] == EVENTS


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_invalid_lines_are_ignored(pieces):
    parsed(*pieces)


def test_invalid_ids_and_retry_times_are_ignored():
    _, parser = parsed(b"id: 3\n\nid: a\0b\nretry: 1.5\nretry: -1\nretry: soon\n\n")

    assert (parser.last_id, parser.retry) == ("3", None)


def test_an_id_counts_after_its_event_is_complete():
    _, parser = parsed(b"id: 3\ndata: x\n\nid: 4\ndata: y\n")

    assert parser.last_id == "3"


def test_data_must_be_json():
    assert Event("x", '{"a": 1}').json() == {"a": 1}
    with pytest.raises(BadAnswer, match="'x' is no JSON object"):
        Event("x", "{").json()
