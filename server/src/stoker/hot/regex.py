"""
Regular expressions from users. RE2 executes them: its time grows linearly with the text, whatever the pattern.

Python's ``re`` backtracks, holds the interpreter lock meanwhile and cannot be interrupted, so one pattern could block
the whole process. No other module may compile a user's pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from stoker.hot.words import quote_word

#: Maximum number of characters of a pattern; the longest in use (IPv6 addresses) have about 1,500.
MAX_PATTERN = 4096
#: Maximum bytes of a compiled pattern with its matcher's caches. 1 MiB is enough for 9,000 characters' worth of
#: repetitions.
_MAX_MEMORY = 1024 * 1024
#: Maximum number of instructions of a pattern times bytes of a text: about one second, which cannot be interrupted.
MAX_WORK = 50_000_000
_COMPILED = 32

_SPLIT = "split the condition into several expressions that must all match"
_WRITE_OUT = "write the repeated part out"
_NO_BACKTRACKING = "use the plain form, which is as fast: RE2 never backtracks"
#: The beginning of RE2's complaint, the name of the construct, and the alternative. The first match counts.
_CONSTRUCTS = (
    ("(?=", "a look-ahead", _SPLIT),
    ("(?!", "a negative look-ahead", _SPLIT),
    ("(?<", "a look-behind", _SPLIT),
    ("(?>", "an atomic group", _NO_BACKTRACKING),
    ("(?P", "a named back-reference", _WRITE_OUT),
    ("(?(", "a conditional group", "use alternatives: a|b"),
    ("(?#", "a comment", "remove it"),
    ("(?", "an unknown flag", "use (?i), (?m) or (?s)"),
    *((rf"\{digit}", "a back-reference", _WRITE_OUT) for digit in "123456789"),
    (r"\C", "a match of single bytes", "use a dot"),
    (r"\N", "a character by its name", r"write it as \x{…}"),
)
#: Tokens that Python and RE2 may write differently: escapes, character classes, repetitions.
_ESCAPE = r"\\(?:u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|.)"
_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_REPETITION = r"\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}"
_TOKEN = re.compile(f"{_ESCAPE}|(?P<class>{_CLASS})|{_REPETITION}", re.DOTALL)
_TOKEN_IN_CLASS = re.compile(_ESCAPE, re.DOTALL)
_STRUCTURE = re.compile(rf"\\.|{_CLASS}|[()|]", re.DOTALL)
_EXCLUSION = "(?!"
_GLOB_TOKEN = re.compile(r"\*+|\?|\[(?P<other>!?)(?P<among>\]?[^\]]*)\]|.", re.DOTALL)
#: RE2 treats longer numbers as plain text.
_LONGEST_NUMBER = 8


class BadPattern(ValueError):
    """The pattern is invalid, or too expensive for a text. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Every method raises ``BadPattern`` if pattern and text together are too expensive."""

    #: As the user wrote it.
    source: str
    _compiled: Any
    #: The negative look-aheads at the beginning: no match begins where one of them matches.
    _excluded: tuple[Any, ...] = ()

    def matches_whole(self, text: str) -> bool:
        """
        Whether the match at the beginning of ``text`` covers all of it, as Heat's ``allowed_pattern`` requires.

        This differs from a full match: for ``a|ab`` the first matching alternative counts, so ``ab`` is refused.
        """
        match = self.match(text)
        return match is not None and match.end() == len(text)

    def match(self, text: str) -> Any:
        """The match at the beginning of ``text``, or None; it has the methods of Python's match objects."""
        if self.size * len(text) > MAX_WORK:
            raise BadPattern(
                f"the regular expression {quote_word(self.source)} is too large for a text of {len(text)} characters: "
                "shorten either, or repeat less in the expression"
            )
        return None if any(excluded.match(text) for excluded in self._excluded) else self._compiled.match(text)

    @property
    def size(self) -> int:
        """Number of instructions of the compiled pattern."""
        return sum(int(compiled.programsize) for compiled in (self._compiled, *self._excluded))


@lru_cache(maxsize=_COMPILED)
def compile_pattern(source: str) -> Pattern:
    """Compile a user's pattern. Raises BadPattern, which names the pattern, the construct and the alternative."""
    if len(source) > MAX_PATTERN:
        raise BadPattern(
            f"the regular expression {quote_word(source)} has more than {MAX_PATTERN} characters: shorten it"
        )
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    exclusions, rest = _split_exclusions(source)
    try:
        compiled = [re2.compile(_TOKEN.sub(_translate, part), options) for part in (rest, *exclusions)]
        re2.purge()  # RE2's own cache keeps 128 patterns of up to 1 MiB each
    except UnicodeEncodeError:
        raise BadPattern("the regular expression has half a surrogate pair, which is no character") from None
    except re2.error as error:
        detail = error.args[0] if error.args else error
        raise BadPattern(_explain(source, detail.decode() if isinstance(detail, bytes) else str(detail))) from None
    return Pattern(source, compiled[0], tuple(compiled[1:]))


def compile_glob(glob: str) -> Pattern:
    """Compile a shell pattern (``*``, ``?``, ``[abc]``, ``[!abc]``) for ``matches_whole``. Raises BadPattern."""
    return compile_pattern(f"(?s){_GLOB_TOKEN.sub(_translate_glob, glob)}" + r"\z")


def _split_exclusions(source: str) -> tuple[Sequence[str], str]:
    """
    Split a pattern such as ``^(?!default$)[a-z]+`` into the negative look-aheads at its beginning, which RE2 lacks, and
    the rest, which has to match while none of them does; not if an alternative has no look-ahead.
    """
    anchor = "^" if source.startswith("^") else ""
    exclusions, rest = [], source.removeprefix("^")
    while rest.startswith(_EXCLUSION):
        end = _find_outermost(")", rest)
        if end == len(rest) or rest.startswith(("*", "+", "?", "{"), end + 1):
            return (), source
        exclusions.append(rest[len(_EXCLUSION) : end])
        rest = rest[end + 1 :]
    return ((), source) if _find_outermost("|", rest) < len(rest) else (exclusions, anchor + rest)


def _find_outermost(wanted: str, text: str) -> int:
    """Return the index of the first mark outside of all groups that have begun in ``text``; its length if none is."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        depth += (mark == "(") - (mark == ")")
        if mark == wanted and depth == 0:
            return match.start()
    return len(text)


def _translate(token: re.Match[str]) -> str:
    if token["class"] is not None:
        return _TOKEN_IN_CLASS.sub(_translate_escape, token["class"])
    if token["comma"] is None:
        return _translate_escape(token)
    least, most = token["least"], token["most"]
    if len(least) > _LONGEST_NUMBER or len(most) > _LONGEST_NUMBER:
        raise re2.error(f"invalid repetition size: {token[0]}")
    return f"{{0,{most}}}" if token["comma"] and most and not least else token[0]


def _translate_escape(token: re.Match[str]) -> str:
    if number := token["short"] or token["long"]:
        return rf"\x{{{number}}}"
    if token[0] == r"\C":  # matches single bytes, which are not text
        raise re2.error(r"invalid escape sequence: \C")
    return r"\z" if token[0] == r"\Z" else token[0]


def _translate_glob(token: re.Match[str]) -> str:
    text = token[0]
    if token["among"] is None:
        return {"*": ".*", "?": "."}.get(text[0]) or re.escape(text)
    among = "".join(character if character == "-" else re.escape(character) for character in token["among"])
    return f"[{'^' if token['other'] else ''}{among}]"


def _explain(source: str, detail: str) -> str:
    problem, _, token = detail.rpartition(": ")
    constructs = _CONSTRUCTS
    if problem == "bad repetition operator" and token.endswith("+"):
        constructs = ((token, "a possessive quantifier", _NO_BACKTRACKING),)
    for beginning, name, remedy in constructs:
        if token.startswith(beginning):
            return (
                f"the regular expression {quote_word(source)} has {name} ({token}), which RE2 does not support:"
                f" {remedy}"
            )
    if detail.startswith("pattern too large"):
        detail = "it is too large: repeat less"
    elif problem == "invalid repetition size":
        detail += " (at most 1000, nested repetitions multiplied)"
    return f"{quote_word(source)} is no regular expression: {detail}"
