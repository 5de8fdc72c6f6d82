"""Responses with ranges of an object: one range as is, several as multipart/byteranges."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from stoker.http.objects.headers import wire
from stoker.http.request_context import Response
from stoker.model.objects import Stored


def reply(stored: Stored, data: bytes, ranges: Sequence[tuple[int, int]], headers: Mapping[str, str]) -> Response:
    """Return a partial response. ``ranges`` has at least one range: (first byte, last byte + 1)."""
    if len(ranges) == 1:
        start, end = ranges[0]
        return Response(206, data[start:end], wire({**headers, "Content-Range": _range(start, end, stored.size)}))
    line = secrets.token_hex(16)
    kind = {**headers, "Content-Type": f"multipart/byteranges;boundary={line}"}
    heads = [
        (
            f"--{line}\r\nContent-Type: {stored.content_type}\r\n"
            f"Content-Range: {_range(start, end, stored.size)}\r\n\r\n"
        ).encode()
        for start, end in ranges
    ]
    last = f"--{line}--".encode()
    view = memoryview(data)  # a memoryview, so that join makes the only copy
    pieces = [
        piece for head, (start, end) in zip(heads, ranges, strict=True) for piece in (head, view[start:end], b"\r\n")
    ]
    return Response(206, b"".join([*pieces, last]), wire(kind))


def _range(start: int, end: int, size: int) -> str:
    return f"bytes {start}-{end - 1}/{size}"
