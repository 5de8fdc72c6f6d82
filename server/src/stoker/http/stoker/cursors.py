"""
Cursors of event streams: the positions of several subjects, as ``t0123456789ab_812.44,s0123456789ab_1203``.

The parts are joined by commas, each a name and the position, which only the subject's reader understands. Clients do
not look into cursors.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Characters of a subject's id in its name, enough for the subjects of one stream.
_ID = 12
#: Digits of a number in a position.
_DIGITS = 18


def name(subject: str) -> str:
    """Return the name of a subject, such as ``trigger:<id>``."""
    noun, _, id = subject.partition(":")
    return noun[0] + id[:_ID]


def parse(cursor: str) -> dict[str, str]:
    """Return the positions of a cursor by the names of their subjects; nothing for a text that is no cursor."""
    parts = (part.rpartition("_") for part in cursor.split(","))
    return {subject: position for subject, _, position in parts if subject}


def join(positions: Mapping[str, str]) -> str:
    """Return the cursor with these positions, by the names of their subjects."""
    return ",".join(f"{subject}_{position}" for subject, position in positions.items())


def parse_number(text: str) -> int | None:
    """Return a number of a position; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
