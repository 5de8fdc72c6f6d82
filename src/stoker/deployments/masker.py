"""
Masks secrets in the output of runs: each is replaced by stars before any byte is stored, whichever agent sent it.

A secret is replaced by as many stars as it has bytes, so that offsets of the stream remain valid. A secret may begin in
one chunk and end in the next, so bytes at the end of a chunk that may begin a secret are held back. The masker finds
literal values of at least ``secrets.SHORTEST`` characters, their form in JSON, and the longer lines of multi-line
values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from stoker.model.secrets import SHORTEST, variants

_STAR = b"*"


class Masker:
    """Masks one stream of one run."""

    def __init__(self, secrets: Iterable[str]) -> None:
        encoded = {
            text.encode("utf-8", "replace") for secret in secrets for text in variants(secret) if len(text) >= SHORTEST
        }
        #: Longest first, because one secret may be the beginning of another.
        self._secrets = sorted(encoded, key=len, reverse=True)
        self._expression = re.compile(b"|".join(map(re.escape, self._secrets))) if encoded else None

    def mask(self, data: bytes) -> tuple[bytes, bytes]:
        """Return (``data`` with secrets masked, bytes at its end that may begin a secret, unmasked)."""
        if self._expression is None:
            return data, b""
        masked, end = bytearray(data), 0
        for match in self._expression.finditer(data):
            end = match.end()
            masked[match.start() : end] = _STAR * (end - match.start())
        kept = len(data) - self._prefix_length(data[end:])
        return bytes(masked[:kept]), data[kept:]

    def _prefix_length(self, data: bytes) -> int:
        """Return how many bytes at the end of ``data`` are the beginning of a secret."""
        longest = 0
        for secret in self._secrets:
            for size in range(min(len(secret) - 1, len(data)), longest, -1):
                if data.endswith(secret[:size]):
                    longest = size
                    break
        return longest


def release(held_bytes: bytes) -> bytes:
    """Return held bytes at the end of a stream: masked if long enough to reveal the beginning of a secret."""
    return held_bytes if len(held_bytes) < SHORTEST else _STAR * len(held_bytes)
