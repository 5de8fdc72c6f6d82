"""The agent's output on a terminal: control characters in texts of scripts and services are shown, not sent."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Any, Callable, TextIO

#: Control characters other than tab and newline, and characters that change the writing direction.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]")


class Terminal:
    """A text stream that shows control characters as escapes, such as ``\\x1b``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(show_controls(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def protect() -> None:
    """Put ``Terminal`` before those of the standard streams that are terminals."""
    if sys.stdout.isatty():
        sys.stdout = Terminal(sys.stdout)
    if sys.stderr.isatty():
        sys.stderr = Terminal(sys.stderr)


def byte_writer() -> Callable[[bytes], object]:
    """Return a function that writes parts of one file to standard output: unchanged unless it is a terminal."""
    if not isinstance(sys.stdout, Terminal):
        return sys.stdout.buffer.write
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda data: sys.stdout.write(decoder.decode(data))


def show_controls(text: str) -> str:
    """Return a text whose control characters are escapes. A line may end with a carriage return and a newline."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: "re.Match[str]") -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
