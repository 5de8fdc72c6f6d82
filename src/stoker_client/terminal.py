"""Removes terminal control sequences from texts by scripts, agents and other users."""

import re
from typing import IO

_SEQUENCES = re.compile(
    # operating system commands such as titles and the clipboard, with 7-bit or 8-bit controls
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    # control sequences: cursor, colours, screen
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
#: Control characters other than tab and newline, and characters that change the writing direction.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]")


def strip_controls(text: str) -> str:
    """
    Return ``text`` without control sequences and without characters that change how others look.

    A carriage return becomes a newline, so that no text is overwritten. An incomplete sequence remains as plain
    characters.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = _SEQUENCES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", lines)


def escape_controls(text: str) -> str:
    """Return ``text``, which is JSON, with control characters as JSON escapes. The values do not change."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def has_controls(text: str) -> bool:
    """Whether ``text`` contains control characters."""
    return _CONTROLS.search(text) is not None


def clean_for(text: str, stream: IO[str], *, raw: bool = False) -> str:
    """Return ``text`` for ``stream``: without control sequences on a terminal, unless ``raw``."""
    return text if raw or not stream.isatty() else strip_controls(text)
