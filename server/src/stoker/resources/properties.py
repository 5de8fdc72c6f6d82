"""Property schemas and the validation of values. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from stoker.hot import UNKNOWN, parameter_values
from stoker.hot.text import read_json
from stoker.hot.words import clip, did_you_mean, kind_of

Kind = Literal["string", "integer", "number", "boolean", "list", "map", "any"]
Path = tuple[str | int, ...]


class PropertyError(Exception):
    """A value does not match its schema. ``path`` leads from the resource's properties to the value."""

    def __init__(self, path: Path, problem: str, *, at_parent: bool = False) -> None:
        """``at_parent``: Heat reports this error at the enclosing map."""
        super().__init__(problem)
        #: Clipped, because a client chooses the names and their length.
        self.path = tuple(clip(part) if isinstance(part, str) else part for part in path)
        #: The path that Heat reports.
        self.shown = self.path[:-1] if at_parent else self.path
        self.problem = clip(problem)

    def describe(self, part: str) -> str:
        """Return the message with the path of the value, which is in this part of a resource's definition."""
        return f"{'.'.join((part, *map(str, self.path)))}: {self.problem}"


class Property(Struct, frozen=True, kw_only=True):
    """The schema of a property. ``schema`` describes the entries of a map, ``each`` the items of a list."""

    kind: Kind
    required: bool = False
    default: Any = None
    #: True if a change can be applied in place; otherwise, a change replaces the resource.
    update_allowed: bool = False
    #: True if the property only says how something runs: a change of it alone applies from the next run on.
    is_setting: bool = False
    allowed: Sequence[Any] = ()
    minimum: float | None = None
    maximum: float | None = None
    #: Limit of a string in characters.
    longest: int | None = None
    schema: Mapping[str, Property] | None = None
    each: Property | None = None
    #: Heat's custom constraint of a string that names an object of a cloud, such as ``glance.image``.
    constraint: str = ""
    description: str = ""


def check(
    schema: Mapping[str, Property] | None, values: Any, at: Path = (), errors: list[PropertyError] | None = None
) -> dict[str, Any]:
    """
    Return all properties of the schema, converted, with defaults or None. Without a schema, any are accepted; UNKNOWN
    is everywhere. Raises PropertyError; with ``errors``, appends the errors, and wrong properties are UNKNOWN.
    """
    if not isinstance(values, Mapping):
        if values is not UNKNOWN:
            _refuse(PropertyError(at, f"Value must be a map, not {kind_of(values)}"), errors)
        return dict.fromkeys(schema or (), UNKNOWN)
    if schema is None:
        return dict(values)
    if not values.keys() <= schema.keys():
        _refuse_unknown(schema, values, at, errors)
    checked = {}
    for name, wanted in schema.items():
        value = values.get(name)
        try:
            if value is not None:
                checked[name] = fit(wanted, value, (*at, name))
            elif wanted.required:
                raise PropertyError((*at, name), f"Property {name} not assigned", at_parent=True)
            else:
                checked[name] = wanted.default
        except PropertyError as error:
            _refuse(error, errors)
            checked[name] = UNKNOWN
    return checked


def _refuse_unknown(
    schema: Mapping[str, Property], names: Iterable[str], at: Path, errors: list[PropertyError] | None
) -> None:
    for name in names:
        if name not in schema:
            hint = did_you_mean(name, schema) or f"; known are {', '.join(sorted(schema)) or 'none'}"
            _refuse(PropertyError((*at, name), f"Unknown Property {name}{hint}", at_parent=True), errors)


def _refuse(error: PropertyError, errors: list[PropertyError] | None) -> None:
    if errors is None:
        raise error
    errors.append(error)


def list_constrained(schema: Mapping[str, Property], values: Any, at: Path = ()) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, custom constraint, value) of checked values, except for those that are UNKNOWN."""
    if not isinstance(values, Mapping):
        return
    for name, wanted in schema.items():
        yield from _constrained(wanted, values.get(name), (*at, name))


def _constrained(wanted: Property, value: Any, at: Path) -> Iterator[tuple[Path, str, str]]:
    if wanted.constraint and isinstance(value, str):
        yield at, wanted.constraint, value
    elif wanted.schema is not None:
        yield from list_constrained(wanted.schema, value, at)
    elif wanted.each is not None and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _constrained(wanted.each, item, (*at, index))


def fit(wanted: Property, value: Any, at: Path) -> Any:
    """Return ``value`` converted to the property's kind. Raises PropertyError."""
    if value is UNKNOWN:
        return value
    fitting = _FIT[wanted.kind](wanted, value, at)
    if wanted.allowed and fitting not in wanted.allowed:
        allowed = ", ".join(f'"{choice}"' for choice in wanted.allowed)
        hint = did_you_mean(fitting, wanted.allowed)
        raise PropertyError(at, f'"{fitting}" is not an allowed value [{allowed}]{hint}')
    if isinstance(fitting, int | float) and not isinstance(fitting, bool):
        _within(wanted, fitting, at)
    return fitting


def _within(wanted: Property, value: float, at: Path) -> None:
    low, high = wanted.minimum, wanted.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        raise PropertyError(at, f"{value} is out of range (min: {low}, max: {high})")


def _string(wanted: Property, value: Any, at: Path) -> str:
    if not isinstance(value, str | bool | int | float):
        raise PropertyError(at, f"Value must be a string; got {kind_of(value)}")
    text = str(value)
    if "\0" in text:
        # An agent's output may contain NUL, which is invalid in names, ids and scripts.
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
        return parameter_values.number(value)
    except ValueError:
        raise PropertyError(at, f"Value {value!r} is not a number") from None


def _boolean(_: Property, value: Any, at: Path) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else None
    if word not in ("true", "false"):  # as in Heat, where only parameters accept "yes", "on" and 1
        shown = value if isinstance(value, str | int | float) else kind_of(value)
        raise PropertyError(at, f'"{shown}" is not a valid boolean')
    return word == "true"


def _list(wanted: Property, value: Any, at: Path) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise PropertyError(at, f"Value must be a list, not {kind_of(value)}")
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
        raise PropertyError(at, f"Value must be a map, not {kind_of(value)}")
    return check(wanted.schema, value, at) if wanted.schema is not None else dict(value)


def _any(_: Property, value: Any, _at: Path) -> Any:
    return value


_FIT: Mapping[Kind, Callable[[Property, Any, Path], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "list": _list,
    "map": _map,
    "any": _any,
}
