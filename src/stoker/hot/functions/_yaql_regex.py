"""YAQL's regular expression functions, executed by ``hot.regex`` in place of Python's ``re``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from yaql.language import specs, utils, yaqltypes

from stoker.hot.budget import YAQL_STEPS
from stoker.hot.functions._yaql_bounds import MAX_TEXT
from stoker.hot.regex import Pattern, compile_pattern

#: A group reference or an escape in a replacement.
_REFERENCE = re.compile(r"\\(?:g<(\w+)>|([1-9][0-9]?)|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "b": "\b", "\\": "\\"}


def register(context: Any) -> Any:
    """A context that adds these functions to those of ``context``."""
    child = context.create_child_context()
    for function in _FUNCTIONS:
        child.register_function(function)
    return child


@specs.name("regex")
@specs.parameter("pattern", yaqltypes.String())
@specs.parameter("ignore_case", bool)
@specs.parameter("multi_line", bool)
@specs.parameter("dot_all", bool)
def _regex(pattern: str, ignore_case: bool = False, multi_line: bool = False, dot_all: bool = False) -> Pattern:
    return compile_pattern(pattern, ignore_case=ignore_case, multi_line=multi_line, dot_all=dot_all)


@specs.name("matches")
@specs.method
@specs.parameter("regexp", Pattern)
@specs.parameter("string", yaqltypes.String())
def _matches(regexp: Pattern, string: str) -> bool:
    return regexp.search(string) is not None


@specs.name("matches")
@specs.method
@specs.parameter("string", yaqltypes.String())
@specs.parameter("regexp", yaqltypes.String())
def _text_matches(string: str, regexp: str) -> bool:
    return compile_pattern(regexp).search(string) is not None


@specs.name("#operator_=~")
@specs.parameter("string", yaqltypes.String())
@specs.parameter("regexp", Pattern)
def _is_like(string: str, regexp: Pattern) -> bool:
    return regexp.search(string) is not None


@specs.name("#operator_=~")
@specs.parameter("string", yaqltypes.String())
@specs.parameter("pattern", yaqltypes.String())
def _is_like_text(string: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(string) is not None


@specs.name("#operator_!~")
@specs.parameter("string", yaqltypes.String())
@specs.parameter("regexp", Pattern)
def _is_unlike(string: str, regexp: Pattern) -> bool:
    return regexp.search(string) is None


@specs.name("#operator_!~")
@specs.parameter("string", yaqltypes.String())
@specs.parameter("pattern", yaqltypes.String())
def _is_unlike_text(string: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(string) is None


@specs.name("search")
@specs.method
@specs.parameter("regexp", Pattern)
@specs.parameter("string", yaqltypes.String())
@specs.parameter("selector", yaqltypes.Lambda(with_context=True))
def _search(context: Any, regexp: Pattern, string: str, selector: Any = None) -> Any:
    match = regexp.search(string)
    if match is None:
        return None
    return match.group() if selector is None else selector(_with_groups(context, match))


@specs.name("searchAll")
@specs.method
@specs.parameter("regexp", Pattern)
@specs.parameter("string", yaqltypes.String())
@specs.parameter("selector", yaqltypes.Lambda(with_context=True))
def _search_all(context: Any, regexp: Pattern, string: str, selector: Any = None) -> Iterator[Any]:
    for match in _find_all(context, regexp, string):
        yield match.group() if selector is None else selector(_with_groups(context, match))


@specs.name("split")
@specs.method
@specs.parameter("regexp", Pattern)
@specs.parameter("string", yaqltypes.String())
@specs.parameter("max_split", int)
def _split(context: Any, regexp: Pattern, string: str, max_split: int = 0) -> list[Any]:
    return _divide(context, regexp, string, max_split)


@specs.name("split")
@specs.method
@specs.parameter("string", yaqltypes.String())
@specs.parameter("regexp", Pattern)
@specs.parameter("max_split", int)
def _split_text(context: Any, string: str, regexp: Pattern, max_split: int = 0) -> list[Any]:
    return _divide(context, regexp, string, max_split)


@specs.name("replace")
@specs.method
@specs.parameter("regexp", Pattern)
@specs.parameter("string", yaqltypes.String())
@specs.parameter("repl", yaqltypes.String())
@specs.parameter("count", int)
def _replace(context: Any, regexp: Pattern, string: str, repl: str, count: int = 0) -> str:
    return _substitute(context, regexp, string, lambda match: _expand(repl, match), count)


@specs.name("replace")
@specs.method
@specs.parameter("string", yaqltypes.String())
@specs.parameter("regexp", Pattern)
@specs.parameter("repl", yaqltypes.String())
@specs.parameter("count", int)
def _replace_text(context: Any, string: str, regexp: Pattern, repl: str, count: int = 0) -> str:
    return _substitute(context, regexp, string, lambda match: _expand(repl, match), count)


@specs.name("replaceBy")
@specs.method
@specs.parameter("regexp", Pattern)
@specs.parameter("string", yaqltypes.String())
@specs.parameter("repl", yaqltypes.Lambda(with_context=True))
@specs.parameter("count", int)
def _replace_by(context: Any, regexp: Pattern, string: str, repl: Any, count: int = 0) -> str:
    return _substitute(context, regexp, string, lambda match: repl(_with_groups(context, match)), count)


@specs.name("replaceBy")
@specs.method
@specs.parameter("string", yaqltypes.String())
@specs.parameter("regexp", Pattern)
@specs.parameter("repl", yaqltypes.Lambda(with_context=True))
@specs.parameter("count", int)
def _replace_text_by(context: Any, string: str, regexp: Pattern, repl: Any, count: int = 0) -> str:
    return _substitute(context, regexp, string, lambda match: repl(_with_groups(context, match)), count)


@specs.name("escapeRegex")
@specs.parameter("string", yaqltypes.String())
def _escape_regex(string: str) -> str:
    return re.escape(string)


@specs.name("isRegex")
def _is_regex(value: Any) -> bool:
    return isinstance(value, Pattern)


def _find_all(context: Any, pattern: Pattern, text: str) -> Iterator[Any]:
    """All matches. Each match costs as much as a call, because it is a search of its own."""
    for match in pattern.find_all(text):
        context.budget.spend(steps=YAQL_STEPS)
        context.budget.check_deadline()
        yield match


def _with_groups(context: Any, match: Any) -> Any:
    """A context in which ``$`` is the match, ``$2`` its first group, and ``$name`` the group of that name."""
    child = context.create_child_context()
    for number in range(len(match.groups()) + 1):
        child[f"${number + 1}"] = _group(match, number)
    for name in match.groupdict():
        child[f"${name}"] = _group(match, match.re.groupindex[name])
    return child


def _group(match: Any, number: int) -> Any:
    return utils.FrozenDict(value=match.group(number), start=match.start(number), end=match.end(number))


def _divide(context: Any, pattern: Pattern, text: str, most: int) -> list[Any]:
    pieces, end = [], 0
    for match in _find_all(context, pattern, text) if most >= 0 else ():
        pieces += [text[end : match.start()], *match.groups()]
        end = match.end()
        most -= 1
        if most == 0:
            break
    return [*pieces, text[end:]]


def _substitute(context: Any, pattern: Pattern, text: str, replacement: Callable[[Any], Any], most: int) -> str:
    pieces, end, length = [], 0, len(text)
    for match in _find_all(context, pattern, text) if most >= 0 else ():
        new = replacement(match)
        if not isinstance(new, str):
            raise TypeError("a match is replaced by text")
        length += len(new)
        if length > MAX_TEXT:
            raise ValueError(f"the text would be too long: more than {MAX_TEXT} characters")
        pieces += [text[end : match.start()], new]
        end = match.end()
        most -= 1
        if most == 0:
            break
    return "".join([*pieces, text[end:]])


def _expand(template: str, match: Any) -> str:
    """Expand Python's group references in a replacement. Raises ValueError, IndexError."""

    def part(reference: re.Match[str]) -> str:
        name, number, escaped = reference.groups()
        if escaped is None:
            return match.group(int(number) if number else int(name) if name.isdigit() else name) or ""
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise ValueError(f"bad escape \\{escaped} in a replacement")
        return _ESCAPES.get(escaped, f"\\{escaped}")

    return _REFERENCE.sub(part, template)


_FUNCTIONS = (
    _regex,
    _matches,
    _text_matches,
    _is_like,
    _is_like_text,
    _is_unlike,
    _is_unlike_text,
    _search,
    _search_all,
    _split,
    _split_text,
    _replace,
    _replace_text,
    _replace_by,
    _replace_text_by,
    _escape_regex,
    _is_regex,
)
