"""Shows control characters in texts by scripts, agents and other users, so that no terminal obeys them."""

import re
from typing import IO

#: What a terminal or a program may take for the end of a line.
_LINE_BREAKS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
#: Control characters other than tab and newline, and characters that change the writing direction.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")


def split_lines(text: str) -> list[str]:
    """
    Split at every line break, also at those that only some programs know. The last part is the incomplete line.

    A carriage return at the end of the text belongs to the incomplete line, because a newline may follow.
    """
    end = "\r" if text.endswith("\r") else ""
    *lines, last = _LINE_BREAKS.split(text.removesuffix(end))
    return [*lines, last + end]


def show_controls(text: str) -> str:
    """
    Return ``text`` with control characters as escapes such as ``\\x1b``.

    Every line break becomes a newline, so that no text is overwritten.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(lambda match: show_character(match[0]), _LINE_BREAKS.sub("\n", text))


def show_character(character: str) -> str:
    """Return the escape of a character, such as ``\\x1b``."""
    return character.encode("unicode_escape").decode("ascii")


def show_line(text: str) -> str:
    """Return ``text`` as one line: tabs as spaces, and line breaks and all that is not printable as escapes."""
    return "".join(char if char.isprintable() else show_character(char) for char in text.expandtabs())


def escape_controls(text: str) -> str:
    """Return ``text``, which is JSON, with control characters as JSON escapes. The values do not change."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def has_controls(text: str) -> bool:
    """Whether ``text`` contains control characters."""
    return _CONTROLS.search(text) is not None


def clean_for(text: str, stream: IO[str], *, raw: bool = False) -> str:
    """Return ``text`` for ``stream``: with control characters shown on a terminal, unless ``raw``."""
    return text if raw or not stream.isatty() else show_controls(text)
