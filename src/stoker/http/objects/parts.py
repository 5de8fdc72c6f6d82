"""Some of an object's bytes: one part as it is, several with a line between them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from stoker.http.call import Reply
from stoker.http.objects.headers import wire
from stoker.model.objects import Stored


def reply(stored: Stored, data: bytes, wanted: Sequence[tuple[int, int]], shown: Mapping[str, str]) -> Reply:
    """``wanted``: (first byte, one behind the last), at least one."""
    if len(wanted) == 1:
        start, end = wanted[0]
        return Reply(206, data[start:end], wire({**shown, "Content-Range": _range(start, end, stored.size)}))
    line = secrets.token_hex(16)
    kind = {**shown, "Content-Type": f"multipart/byteranges;boundary={line}"}
    heads = [
        (
            f"--{line}\r\nContent-Type: {stored.content_type}\r\n"
            f"Content-Range: {_range(start, end, stored.size)}\r\n\r\n"
        ).encode()
        for start, end in wanted
    ]
    last = f"--{line}--".encode()
    pieces = [head + data[start:end] + b"\r\n" for head, (start, end) in zip(heads, wanted, strict=True)]
    return Reply(206, b"".join([*pieces, last]), wire(kind))


def _range(start: int, end: int, size: int) -> str:
    return f"bytes {start}-{end - 1}/{size}"
