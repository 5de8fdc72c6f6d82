"""Property schemas and the one function that holds values against them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stoker.hot import UNKNOWN
from stoker.hot.parameters import values
from stoker.hot.text import read_json
from stoker.hot.words import clip

Kind = Literal["string", "integer", "number", "boolean", "list", "map", "any"]
Path = tuple[str | int, ...]

_TRUE = frozenset(("t", "true", "on", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "off", "n", "no", "0"))


class PropertyError(Exception):
    """A value does not fit its schema; ``path`` is where, below the resource's properties."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(problem)
        #: Names in it may be anybody's, and of any length.
        self.path = tuple(clip(part) if isinstance(part, str) else part for part in path)
        self.problem = clip(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """``schema`` describes a map's entries by name, ``each`` a list's items."""

    kind: Kind
    required: bool = False
    default: Any = None
    #: A change can be applied in place; otherwise it replaces the resource.
    update_allowed: bool = False
    allowed: Sequence[Any] = ()
    minimum: float | None = None
    maximum: float | None = None
    #: Characters of a string.
    longest: int | None = None
    schema: Mapping[str, Property] | None = None
    each: Property | None = None
    description: str = ""


def check(schema: Mapping[str, Property], given: Any, at: Path = ()) -> dict[str, Any]:
    """
    All properties of the schema, coerced, with defaults (None where there is none). Raises PropertyError.

    Values that are UNKNOWN yet are accepted wherever they stand.
    """
    if given is UNKNOWN:
        return dict.fromkeys(schema, UNKNOWN)
    if not isinstance(given, Mapping):
        raise PropertyError(at, f"Value must be a map, not {_what(given)}")
    for name in given:
        if name not in schema:
            raise PropertyError(
                (*at, name), f"Unknown Property {name}; known are {', '.join(sorted(schema)) or 'none'}"
            )
    found = {}
    for name, wanted in schema.items():
        value = given.get(name)
        if value is None:
            if wanted.required:
                raise PropertyError((*at, name), f"Property {name} not assigned")
            found[name] = wanted.default
        else:
            found[name] = fit(wanted, value, (*at, name))
    return found


def plain(given: Any) -> dict[str, Any]:
    """Properties of a type that takes any. Raises PropertyError."""
    if given is UNKNOWN:
        return {}
    if not isinstance(given, Mapping):
        raise PropertyError((), f"Value must be a map, not {_what(given)}")
    return dict(given)


def fit(wanted: Property, value: Any, at: Path) -> Any:
    """``value`` as the property wants it. Raises PropertyError."""
    if value is UNKNOWN:
        return value
    fitting = _FIT[wanted.kind](wanted, value, at)
    if wanted.allowed and fitting not in wanted.allowed:
        raise PropertyError(at, f"{fitting!r} is not an allowed value [{', '.join(map(str, wanted.allowed))}]")
    if isinstance(fitting, int | float) and not isinstance(fitting, bool):
        _within(wanted, fitting, at)
    return fitting


def _within(wanted: Property, value: float, at: Path) -> None:
    low, high = wanted.minimum, wanted.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        raise PropertyError(at, f"{value} is out of range (min: {low}, max: {high})")


def _string(wanted: Property, value: Any, at: Path) -> str:
    if not isinstance(value, str | bool | int | float):
        raise PropertyError(at, f"Value must be a string, not {_what(value)}")
    text = str(value)
    if "\0" in text:
        # An agent may have said so; no name, id or script can hold one.
        raise PropertyError(at, "Value must be a string without NUL characters")
    if wanted.longest is not None and len(text) > wanted.longest:
        raise PropertyError(at, f"Value must have at most {wanted.longest} characters, not {len(text)}")
    return text


def _integer(_: Property, value: Any, at: Path) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float) or int(value) != float(value):
            raise ValueError
        return int(value)
    except (ValueError, OverflowError):
        raise PropertyError(at, f"Value {value!r} is not an integer") from None


def _number(_: Property, value: Any, at: Path) -> int | float:
    try:
        return values.number(value)
    except ValueError:
        raise PropertyError(at, f"Value {value!r} is not a number") from None


def _boolean(_: Property, value: Any, at: Path) -> bool:
    word = str(value).lower()
    if word not in _TRUE and word not in _FALSE:
        raise PropertyError(at, f"Value {value!r} is not a boolean")
    return word in _TRUE


def _list(wanted: Property, value: Any, at: Path) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise PropertyError(at, f"Value must be a list, not {_what(value)}")
    if wanted.each is None:
        return list(value)
    return [fit(wanted.each, item, (*at, i)) for i, item in enumerate(value) if item is not None]


def _map(wanted: Property, value: Any, at: Path) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError:
            raise PropertyError(at, "Value must be a map, not a text") from None
    if not isinstance(value, Mapping):
        raise PropertyError(at, f"Value must be a map, not {_what(value)}")
    return check(wanted.schema, value, at) if wanted.schema is not None else dict(value)


def _any(_: Property, value: Any, _at: Path) -> Any:
    return value


def _what(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a map"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__


_FIT: Mapping[Kind, Callable[[Property, Any, Path], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "list": _list,
    "map": _map,
    "any": _any,
}
