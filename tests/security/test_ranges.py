"""Parts of objects that overlap, of which one GET could ask for gigabytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.availability import assert_harmless

SIZE = 15 * 1024 * 1024


@pytest.fixture(scope="module")
def path(member):
    container = f"/object-store/v1/AUTH_{member.project}/ranges"
    assert member.request("PUT", container).status == 201
    body = bytes(range(256)) * (SIZE // 256)
    put = member.request("PUT", f"{container}/big", body, **{"Content-Type": "application/octet-stream"})
    assert put.status == 201
    return f"{container}/big"


def test_overlapping_ranges_do_not_multiply_the_object(stoker, member, path):
    def one(_number):
        return member.request("GET", path, Range="bytes=" + ",".join(["0-"] * 50)).status

    def attack():
        with ThreadPoolExecutor(3) as pool:
            assert set(pool.map(one, range(6))) == {416}

    assert_harmless(stoker, attack)


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("0-9,5-14", [(0, 15)]),
        ("100-199,0-9,150-249", [(100, 250), (0, 10)]),
        ("0-9,5-24,20-29", [(0, 30)]),
        ("0-9,10-19", [(0, 10), (10, 20)]),
        ("0-9,0-9", [(0, 10)]),
        (",".join(f"{i}-{i}" for i in range(0, 100, 2)), [(i, i + 1) for i in range(0, 100, 2)]),
    ],
)
def test_a_multipart_answer_repeats_no_byte(member, path, said, parts):
    answer = member.request("GET", path, Range=f"bytes={said}")
    assert answer.status == 206
    shown = [f"bytes {start}-{end - 1}/{SIZE}" for start, end in parts]
    data = [bytes(i % 256 for i in range(start, end)) for start, end in parts]
    if len(parts) == 1:
        assert [answer.headers["Content-Range"]] == shown
        assert [answer.raw] == data
        return
    boundary = answer.headers["Content-Type"].partition("boundary=")[2].encode()
    pieces = [piece.partition(b"\r\n\r\n") for piece in answer.raw.split(b"--" + boundary)[1:-1]]
    assert [piece[2].removesuffix(b"\r\n") for piece in pieces] == data
    assert [head.partition(b"Content-Range: ")[2].decode() for head, _, _ in pieces] == shown


@pytest.mark.parametrize(
    "said",
    [
        ",".join(["0-1"] * 51),
        "0-9,5-14,10-19,15-24",  # three pairs overlap
        ",".join(f"{i}-{i}" for i in range(80, 0, -10)),  # eight in no order
    ],
)
def test_ranges_that_swift_refuses_are_refused(member, path, said):
    answer = member.request("GET", path, Range=f"bytes={said}")
    assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{SIZE}")
