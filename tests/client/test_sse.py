"""Server-sent events out of bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker_client.errors import BadAnswer
from stoker_client.updates import Event, decode, split

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
BLOCKS = [
    {"retry": "250"},
    {"": "", "id": "7", "event": "log", "data": "one\ntwo"},
    {"data": " a space stays"},
    {"event": "empty"},
    {"id": "", "data": ""},
    {"event": "grüße", "id": "9", "unknown": "field", "data": "€"},
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
@example(list(range(len(STREAM))))
def test_events_do_not_depend_on_chunk_borders(cuts):
    ends = [0, *sorted(cuts), len(STREAM)]

    assert list(split(STREAM[start:end] for start, end in pairwise(ends))) == BLOCKS


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_invalid_lines_are_ignored(pieces):
    list(split(pieces))


def test_data_must_be_json():
    assert decode("x", '{"a": 1, "subject": "stack:s"}') == Event("x", "stack:s", {"a": 1})
    with pytest.raises(BadAnswer, match="'x' is no JSON object"):
        decode("x", "{")
