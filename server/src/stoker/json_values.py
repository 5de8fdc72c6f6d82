"""
Values from outside: decoding of JSON, conversion to declared types, and booleans that are words.

Every accepted value can be stored, displayed and encoded again. Errors of msgspec are worded for users.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from stoker.model.errors import Invalid

_decoder = msgspec.json.Decoder()
_texts_decoder = msgspec.json.Decoder(dict[str, str])
#: Limits: bytes of a value of any type, and number of strings in a map of strings.
_SMALL = 1024 * 1024
_MOST_TEXTS = 10_000

#: A member of an object that is not decoded yet.
Part = msgspec.Raw | msgspec.UnsetType

#: Maximum levels of lists and maps. Encoders fail near a thousand levels, and responses wrap stored values in more
#: levels: a signal of 980 levels could be stored, but made every list of deployments fail.
DEEPEST = 200


def decode(raw: bytes, what: str) -> Any:
    """
    Decode JSON. ``what`` names the value in error messages.

    Raises Invalid if the text is not JSON, or is nested too deeply.
    """
    try:
        value = _decoder.decode(raw)
    except RecursionError:
        raise _too_deep(what) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{what} is not JSON: {error}") from None
    if may_be_deep(raw) and _deeper(value):
        raise _too_deep(what)
    return value


def may_be_deep(raw: bytes) -> bool:
    """Return whether the text has enough brackets. Most bodies have fewer, and counting brackets is cheap."""
    return raw.count(b"[") + raw.count(b"{") > DEEPEST


def split(raw: bytes, shape: type[msgspec.Struct], what: str) -> dict[str, bytes]:
    """
    Return the members of a JSON object that ``shape`` names (as ``Part``), each still as JSON text.

    The caller can check their sizes before it decodes them. Other members are skipped. Raises Invalid, also if the
    value is not an object.
    """
    try:
        parts = msgspec.json.decode(raw, type=shape)
    except RecursionError:
        raise _too_deep(what) from None
    except msgspec.ValidationError:
        raise Invalid(f"{what} must be a JSON object") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{what} is not JSON: {error}") from None
    members = ((name, getattr(parts, name)) for name in shape.__struct_fields__)
    return {name: bytes(part) for name, part in members if part is not msgspec.UNSET}


def decode_texts(raw: bytes, what: str) -> Any:
    """
    Decode a map of strings, which needs little more memory than its bytes.

    A small value of another type is returned as decoded, for the caller to refuse. Raises Invalid.
    """
    # A text has four quotes. Only those that end a text can follow a backslash: at least half of the quotes count here,
    # and the time to decode what may have too many texts is bounded.
    if raw.count(b'"') - raw.count(b'\\"') > 4 * _MOST_TEXTS:
        raise _too_many(what)
    try:
        texts = _texts_decoder.decode(raw)
    except msgspec.ValidationError:
        if len(raw) > _SMALL:
            raise Invalid(f"{what} must be a map of texts") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{what} is not JSON: {error}") from None
    else:
        if len(texts) > _MOST_TEXTS:
            raise _too_many(what)
        return texts
    return decode(raw, what)


def json_size(value: Any) -> int:
    """Return the size in bytes of the shortest JSON text of the value."""
    return len(msgspec.json.encode(value))


def _deeper(root: Any) -> bool:
    """Return whether the value has more than DEEPEST levels. Iterates by level, because recursion could overflow."""
    level: list[Any] = [[root]]
    for _ in range(DEEPEST + 1):
        inner = [part for value in level for part in (value.values() if type(value) is dict else value)]
        level = [part for part in inner if type(part) is dict or type(part) is list]
        if not level:
            return False
    return True


def _too_many(what: str) -> Invalid:
    return Invalid(f"{what} must be a map of at most {_MOST_TEXTS} texts")


def _too_deep(what: str) -> Invalid:
    return Invalid(f"{what} is nested too deeply: more than {DEEPEST} levels")


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
            hint = {key: value for part in _classes(hint) for key, value in _members(part).items()}.get(name)
    return _describe_choices(hint, is_entry=member.endswith("]"))


def _classes(hint: Any) -> list[type]:
    return [hint] if isinstance(hint, type) else [inner for part in get_args(hint) for inner in _classes(part)]


def _members(kind: type) -> dict[str, Any]:
    """Return the types of a class's members by their names in JSON."""
    hints, struct = get_type_hints(kind), getattr(kind, "__struct_fields__", ())
    names = dict(zip(struct, getattr(kind, "__struct_encode_fields__", ()), strict=True))
    return {names.get(name, name): hint for name, hint in hints.items()}


def _describe_choices(hint: Any, *, is_entry: bool = False) -> list[Any]:
    """``is_entry``: describe the entries of a list."""
    if members := getattr(hint, "__members__", None):
        return [member.value for member in members.values()]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (list, tuple) and not is_entry:
        return ["a list"]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return ["a map"]
    return [choice for part in get_args(hint) for choice in _describe_choices(part, is_entry=is_entry)]
