"""Converts decoded JSON to declared types, words msgspec's errors for users, and reads booleans that are words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from stoker.model.errors import Invalid

T = TypeVar("T")
#: The words for booleans of OpenStack's services, in lower case.
TRUE_WORDS = ("1", "t", "true", "on", "y", "yes")
FALSE_WORDS = ("0", "f", "false", "off", "n", "no")

NO_NUL = r"^[^\u0000]*$"
#: Strings of requests. The database stores no NUL.
RequiredName = Annotated[str, Meta(min_length=1, max_length=255, pattern=NO_NUL)]
RequiredShortText = Annotated[str, Meta(min_length=1, max_length=64, pattern=NO_NUL)]

_NAMES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "null",
}
_PATH = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.+)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_ENUM = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


def convert(value: Any, kind: type[T], whole: str, *, strict: bool = True) -> T:
    """
    Return a value as the type ``kind``. Raises Invalid; ``whole`` names the value.

    Unless ``strict``, numbers and booleans may be strings.
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise explain(error, kind, whole) from None


def parse_boolean(word: str) -> bool | None:
    """Return the boolean that a word of any case means; None if it means none."""
    folded = word.strip().lower()
    return True if folded in TRUE_WORDS else False if folded in FALSE_WORDS else None


def explain(error: msgspec.ValidationError, kind: Any, whole: str) -> Invalid:
    """
    Return an error that names the wrong member and its expectation in the words of JSON.

    ``whole`` names the value of the type ``kind``, for errors that concern no member.
    """
    match = _PATH.fullmatch(str(error))
    message, path = match.groups() if match else (str(error), "")
    member = path.removeprefix(".")
    if not member and message.startswith("Expected `object`"):
        return Invalid(f"{whole} must be a JSON object")
    if missing := _MISSING.fullmatch(message):
        return Invalid(f"{f'{member}.' if member else ''}{missing[1]} is required")
    if unknown := _UNKNOWN.fullmatch(message):
        return Invalid(f"{member or whole} has the unknown member {unknown[1]!r:.100}")
    return Invalid(f"{member or whole} {_expectation(message, kind, member)}")


def _expectation(message: str, kind: Any, member: str) -> str:
    for pattern, word in _WORDINGS:
        if match := pattern.fullmatch(message):
            return word(*match.groups())
    if choice := _ENUM.fullmatch(message):
        return f"{choice[1][:100]} is none of {', '.join(map(str, _choices(kind, member)))}"
    return f"is not valid: {message}"


def _wrong_type(expected: str, actual: str) -> str:
    types = [name for name in expected.split(" | ") if name != "null" and not (name == "int" and "float" in expected)]
    names = " or ".join(_NAMES.get(name, name) for name in types)
    return f"must be {names}, not {_NAMES.get(actual, actual)}"


def _wrong_length(kind: str, bound: str, length: str) -> str:
    if (bound, length) == (">=", "1"):
        return "must not be empty"
    return f"must have {_BOUNDS[bound]} {length} {'characters' if kind == 'str' else 'entries'}"


#: Messages of msgspec, and functions that word them.
_WORDINGS: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
    (re.compile(r"Expected `([^`]+)`, got `(\w+)`"), _wrong_type),
    (re.compile(r"Expected `(\w+)` of length ([<>]=) (\d+)"), _wrong_length),
    (re.compile(r"Expected `\w+` ([<>]=?) (\S+)"), lambda bound, limit: f"must be {_BOUNDS[bound]} {limit}"),
    (re.compile(r"Expected `str` matching regex '.*u0000.*'"), lambda: "must not contain NUL"),
    (re.compile(r"Invalid RFC3339.*|.* timezone component"), lambda: "must be a time such as 2026-01-01T00:00:00Z"),
)


def _choices(kind: Any, member: str) -> list[Any]:
    """Return what the member at this path of ``kind`` may be: the values of an enumeration, a list, a map."""
    hint = kind
    for name in re.sub(r"\[[^]]*\]", "", member).split("."):
        if name:
            hint = {key: value for part in _classes(hint) for key, value in get_type_hints(part).items()}.get(name)
    return _describe_choices(hint)


def _classes(hint: Any) -> list[type]:
    return [hint] if isinstance(hint, type) else [inner for part in get_args(hint) for inner in _classes(part)]


def _describe_choices(hint: Any) -> list[Any]:
    if members := getattr(hint, "__members__", None):
        return [member.value for member in members.values()]
    if get_origin(hint) in (list, tuple):
        return ["a list"]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return ["a map"]
    return [
        value for part in get_args(hint) for value in ([part] if isinstance(part, str) else _describe_choices(part))
    ]
