"""Checks entries of a config's ``inputs`` and ``outputs`` and converts them to Heat's stored form. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

from stoker.hot.parameters import values
from stoker.hot.text import read_json
from stoker.hot.words import clip
from stoker.model.errors import Invalid

#: Types of inputs and outputs.
Type = Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"]
TYPES: tuple[str, ...] = get_args(Type)
_INPUT_KEYS = frozenset(("name", "type", "description", "default", "replace_on_change", "value", "secret"))
_OUTPUT_KEYS = frozenset(("name", "type", "description", "error_output"))
_TRUE = frozenset(("t", "true", "on", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "off", "n", "no", "0"))


def inputs(entries: Any) -> tuple[dict[str, Any], ...]:
    """Return the checked inputs. Raises Invalid with the entry and its error."""
    return tuple(_input(entry, f"inputs[{i}]") for i, entry in enumerate(_as_list(entries, "inputs")))


def outputs(entries: Any) -> tuple[dict[str, Any], ...]:
    """Return the checked outputs. Raises Invalid with the entry and its error."""
    return tuple(_output(entry, f"outputs[{i}]") for i, entry in enumerate(_as_list(entries, "outputs")))


def _as_list(entries: Any, where: str) -> list[Any]:
    if entries is None:
        return []
    if not isinstance(entries, list | tuple):
        raise Invalid(f"{where} must be a list of maps, not {type(entries).__name__}")
    names = [entry.get("name") for entry in entries if isinstance(entry, Mapping)]
    if len(names) != len({str(name) for name in names}):
        raise Invalid(f"{where} names an entry twice")
    return list(entries)


def _input(entry: Any, where: str) -> dict[str, Any]:
    checked = _check_keys(entry, where, _INPUT_KEYS)
    kept = {key: value for key, value in checked.items() if value is not None or key == "value"}
    _describe(kept, where)
    kept["type"] = _type(checked, where)
    if _flag(kept.pop("replace_on_change", False), f"{where}.replace_on_change"):
        kept["replace_on_change"] = True
    if _flag(kept.pop("secret", False), f"{where}.secret"):
        kept["secret"] = True
    # A default without a type may be any value, as in Heat, and an entry that Stoker has shown may be sent again.
    if kept["type"] != "String" and kept.get("default") not in (None, ""):
        kept["default"] = coerce(kept["type"], kept["default"], f"{where}.default")
    return kept


def _output(entry: Any, where: str) -> dict[str, Any]:
    checked = _check_keys(entry, where, _OUTPUT_KEYS)
    kept = {key: value for key, value in checked.items() if value is not None}
    _describe(kept, where)
    kept["type"] = _type(checked, where)
    kept["error_output"] = _flag(checked.get("error_output", False), f"{where}.error_output")
    return kept


def _check_keys(entry: Any, where: str, keys: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise Invalid(f"{where} must be a map with a name, not {type(entry).__name__}")
    for key in entry:
        if key not in keys:
            raise Invalid(f"{where} has the unknown key {key!r}; known are {', '.join(sorted(keys))}")
    if not isinstance(entry.get("name"), str) or not entry["name"]:
        raise Invalid(f"{where} needs a name")
    return entry


def _describe(kept: dict[str, Any], where: str) -> None:
    if "description" in kept:
        kept["description"] = _string(kept["description"], f"{where}.description")


def _type(entry: Mapping[str, Any], where: str) -> str:
    kind = entry.get("type") or "String"
    if kind not in TYPES:
        raise Invalid(f"{where}.type {kind!r} is none of {', '.join(TYPES)}")
    return str(kind)


def _flag(value: Any, where: str) -> bool:
    if value is None:
        return False
    if isinstance(value, bool):
        return value
    return bool(_boolean(value, where))


def coerce(kind: str, value: Any, where: str) -> Any:
    """
    Convert ``value`` to the type ``kind``, one of TYPES.

    ``where`` names the value in the message. Raises Invalid.
    """
    return _COERCE[kind](value, where)


def _string(value: Any, where: str) -> str:
    if isinstance(value, Mapping | list):
        raise Invalid(f"{where} must be a string, not {type(value).__name__}")
    return str(value)


def _number(value: Any, where: str) -> int | float:
    try:
        return values.number(value)
    except ValueError:
        raise Invalid(f"{where} must be a number, not {_format(value)}") from None


def _list(value: Any, where: str) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    if isinstance(value, str):
        return value.split(",") if value else []
    raise Invalid(f"{where} must be a list or a text with commas, not {_format(value)}")


def _json(value: Any, where: str) -> Any:
    if isinstance(value, Mapping | list):
        return value
    try:
        return read_json(value)
    except (TypeError, ValueError):
        raise Invalid(f"{where} must be a map, a list or JSON text, not {_format(value)}") from None


def _boolean(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise Invalid(f"{where} must be true or false, not {_format(value)}")


def _format(value: Any) -> str:
    return clip(repr(value))


_COERCE: Mapping[str, Callable[[Any, str], Any]] = {
    "String": _string,
    "Number": _number,
    "CommaDelimitedList": _list,
    "Json": _json,
    "Boolean": _boolean,
}
