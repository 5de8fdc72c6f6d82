"""Secrets in streams: no byte of one is let through, however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.deployments.log_storage import Masker, release
from stoker.model.secrets import SHORTEST

KEY = '-----BEGIN KEY-----\nabcdefghijklmnop\nqr"stuvwxyz\n-----END KEY-----'


def streamed(masker: Masker, chunks: list[bytes]) -> bytes:
    out, held = b"", b""
    for chunk in chunks:
        masked, held = masker.mask(held + chunk)
        out += masked
    return out + release(held)


@pytest.mark.parametrize(
    ("secrets", "data", "masked"),
    [
        (["hunter22"], "the password is hunter22.", "the password is ********."),
        (["hunter22"], "hunter2", "*******"),  # cut off in the middle
        (["hunter22"], "hun", "hun"),
        (["abc"], "abc", "abc"),  # too short
        (["abcd", "abcdefgh"], "abcdefgh abcd", "******** ****"),
        ([KEY], 'x qr"stuvwxyz x', "x *********** x"),  # a line of it
        (["päss"], "päss", "*****"),
    ],
)
def test_secrets_are_masked_in_text(secrets, data, masked):
    assert streamed(Masker(secrets), [data.encode()]).decode() == masked


@given(
    secrets=st.lists(st.text("ab\n", min_size=SHORTEST, max_size=12), min_size=1, max_size=3),
    parts=st.lists(st.text("ab\nc", max_size=6), max_size=6),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
def test_chunk_borders_reveal_no_part_of_a_secret(secrets, parts, cuts):
    data = "".join(f"{part}{secrets[number % len(secrets)]}" for number, part in enumerate(parts)).encode()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[begin:end] for begin, end in pairwise(places)]
    found = streamed(Masker(secrets), chunks)
    assert len(found) == len(data), "offsets stay those of the stream"
    assert not any(each.encode() in found for each in secrets)
