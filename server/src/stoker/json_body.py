"""
Decodes JSON from outside: bodies, objects and messages.

Every accepted value can be stored, displayed and encoded again.
"""

from __future__ import annotations

from typing import Any

import msgspec

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
