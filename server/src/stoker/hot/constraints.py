"""Constraints of parameters, one class per kind, and the custom constraints that depend on the value alone."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Self, TypeAlias

from croniter import croniter
from msgspec import Struct
from msgspec.structs import replace

from stoker.hot import parameter_values
from stoker.hot.flaw import Path, flaw, list_at, map_at, scalar_text
from stoker.hot.regex import BadPattern, compile_pattern
from stoker.hot.text import read_json
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import InvalidSchemaError

_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", re.ASCII)
_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.ASCII | re.IGNORECASE)
#: Characters of a cron expression: croniter takes a second for some hundred thousand.
_LONGEST_CRON = 255


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, OverflowError):
            return False
        return True

    return check


def _network(text: str) -> object:
    address, slash, size = text.partition("/")
    if not slash or not size.isascii() or not size.isdigit():
        raise ValueError(text)
    return ipaddress.ip_network(f"{address}/{size}", strict=False)


def _dns_name(text: str) -> bool:
    """An absolute or relative domain name; the last label of an absolute one is not a number."""
    labels = text.removesuffix(".").split(".")
    fits = len(text) <= 255 and all(_LABEL.fullmatch(label) for label in labels)
    return fits and not (len(labels) > 1 and labels[-1].isdigit())


def _cron(text: str) -> None:
    """Read an expression as Heat does, which accepts an empty text."""
    if len(text) > _LONGEST_CRON:
        raise ValueError(text)
    if text:
        croniter(text)


CHECKS: dict[str, Callable[[str], bool]] = {
    "ip_addr": _accepts(ipaddress.ip_address),
    "net_cidr": _accepts(_network),
    "mac_addr": lambda text: _MAC.fullmatch(text) is not None,
    "dns_name": _dns_name,
    "iso_8601": _accepts(datetime.fromisoformat),
    "json_string": _accepts(read_json),
    "cron_expression": _accepts(_cron),
}


_SCALARS = frozenset(("string", "number", "boolean", "comma_delimited_list"))
_Number: TypeAlias = "int | float | None"


class Constraint(Struct, frozen=True, kw_only=True):
    """A constraint of one kind."""

    #: The key in templates, the parameter types that may have it, and its first version.
    KEY: ClassVar[str]
    TYPES: ClassVar[frozenset[str]]
    SINCE: ClassVar[str] = ""

    #: The author's message for a violation.
    description: str = ""

    @classmethod
    def of(cls, raw: Any, type_name: str, path: Path, /) -> Self:
        """Build a constraint from its definition in the template at ``path``. Raises a flaw."""
        raise NotImplementedError

    def problem(self, value: Any) -> str | None:
        """Return the reason why ``value`` violates the constraint; None if it does not."""
        raise NotImplementedError

    def to_json(self) -> Mapping[str, Any]:
        """Return the constraint with the names of Heat's ``validate``."""
        raise NotImplementedError

    def explain(self, problem: str | None, *, hidden: bool) -> str | None:
        """Return the message for the user about a problem, or None; a hidden value is not repeated."""
        if problem is None:
            return None
        return self.description or (f"the value does not satisfy its {self.KEY}" if hidden else problem)


class Range(Constraint, frozen=True, kw_only=True):
    """Limits of a number."""

    KEY = "range"
    TYPES = frozenset(("number",))

    min: _Number
    max: _Number

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Self:
        low, high = _numbers(raw, ("min", "max"), path)
        return cls(min=low, max=high)

    def problem(self, value: Any) -> str | None:
        return self._describe(value, str(value))

    def to_json(self) -> Mapping[str, Any]:
        return {"MinValue": self.min, "MaxValue": self.max}

    def _describe(self, value: int | float, shown: str) -> str | None:
        if (self.min is None or value >= self.min) and (self.max is None or value <= self.max):
            return None
        return f"{shown} is out of range (min: {self.min}, max: {self.max})"


class Length(Range, frozen=True, kw_only=True):
    """Limits of the length of a text, list or map."""

    KEY = "length"
    TYPES = frozenset(("string", "comma_delimited_list", "json"))

    def problem(self, value: Any) -> str | None:
        length = len(value) if isinstance(value, (str, list, dict)) else len(str(value))
        return self._describe(length, f"length ({length})")

    def to_json(self) -> Mapping[str, Any]:
        return {"MinLength": self.min, "MaxLength": self.max}


class Modulo(Constraint, frozen=True, kw_only=True):
    """A number must be a multiple of ``step``, plus ``offset``."""

    KEY = "modulo"
    TYPES = frozenset(("number",))
    SINCE = "2017-02-24"

    step: int | float
    offset: int | float

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Self:
        step, offset = _numbers(raw, ("step", "offset"), path)
        if not step:
            raise flaw(path, "step must be a number other than 0", InvalidSchemaError)
        if abs(offset or 0) >= abs(step):
            raise flaw(path, "offset must be smaller than step", InvalidSchemaError)
        return cls(step=step, offset=offset or 0)

    def problem(self, value: Any) -> str | None:
        try:
            fits = value % self.step == self.offset % self.step
        except OverflowError:
            fits = False
        return None if fits else f"{value} is not a multiple of {self.step} with an offset of {self.offset}"

    def to_json(self) -> Mapping[str, Any]:
        return {"Step": self.step, "Offset": self.offset}


class AllowedValues(Constraint, frozen=True, kw_only=True):
    """A value, or each item of a list, must be one of ``allowed``."""

    KEY = "allowed_values"
    TYPES = _SCALARS

    allowed: tuple[Any, ...]

    @classmethod
    def of(cls, raw: Any, type_name: str, path: Path) -> Self:
        item_type = "string" if type_name == "comma_delimited_list" else type_name
        try:
            return cls(allowed=tuple(parameter_values.convert(item_type, item) for item in list_at(raw, path)))
        except ValueError as error:
            raise flaw(path, str(error), InvalidSchemaError) from None

    def problem(self, value: Any) -> str | None:
        for item in value if isinstance(value, list) else [value]:
            if item not in self.allowed:
                return f"{item} is not an allowed value [{', '.join(map(str, self.allowed))}]"
        return None

    def to_json(self) -> Mapping[str, Any]:
        return {"AllowedValues": list(self.allowed)}


class AllowedPattern(Constraint, frozen=True, kw_only=True):
    """A text must match a regular expression."""

    KEY = "allowed_pattern"
    TYPES = frozenset(("string",))

    #: As text, because compiled patterns are large and a template, which is kept in memory, may have thousands.
    pattern: str
    #: Number of instructions of the compiled pattern.
    size: int

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Self:
        if not isinstance(raw, str):
            raise flaw(path, f"a regular expression is needed, not {kind_of(raw)}", InvalidSchemaError)
        try:
            return cls(pattern=raw, size=compile_pattern(raw).size)
        except BadPattern as error:
            raise flaw(path, str(error), InvalidSchemaError) from None

    def problem(self, value: Any) -> str | None:
        try:
            if compile_pattern(self.pattern).matches_whole(value):
                return None
        except BadPattern as error:
            return str(error)
        return f"{quote_word(value)} does not match pattern {quote_word(self.pattern)}"

    def to_json(self) -> Mapping[str, Any]:
        return {"AllowedPattern": self.pattern}


class Custom(Constraint, frozen=True, kw_only=True):
    """A named check. Checks that need a cloud or a clock are accepted but not executed: this package uses no I/O."""

    KEY = "custom_constraint"
    TYPES = _SCALARS

    name: str

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Self:
        if not isinstance(raw, str):
            raise flaw(path, f"a name is needed, not {kind_of(raw)}", InvalidSchemaError)
        return cls(name=raw)

    def problem(self, value: Any) -> str | None:
        check = CHECKS.get(self.name)
        for item in value if isinstance(value, list) else [value]:
            if check and not check(str(item)):
                return f"{quote_word(item)} does not validate {self.name}"
        return None

    def to_json(self) -> Mapping[str, Any]:
        return {"CustomConstraint": self.name}


_KINDS: tuple[type[Constraint], ...] = (Range, Length, Modulo, AllowedValues, AllowedPattern, Custom)


def parse_constraint(raw: Any, type_name: str, version: str, path: Path) -> Constraint:
    """Parse one entry of a parameter's ``constraints``. Raises a flaw."""
    data = map_at(raw, path)
    kinds: Mapping[str, type[Constraint]] = {kind.KEY: kind for kind in _KINDS if version >= kind.SINCE}
    for key in data:
        if key != "description" and key not in kinds:
            raise flaw((*path, key), f"Invalid key '{key}' for parameter constraints", InvalidSchemaError)
    constraints = [kinds[key] for key in data if key in kinds]
    if len(constraints) != 1:
        raise flaw(path, "exactly one constraint must be expressed", InvalidSchemaError)
    [kind] = constraints
    if type_name not in kind.TYPES:
        raise flaw((*path, kind.KEY), f"{kind.KEY} constraint invalid for {type_name}", InvalidSchemaError)
    description = scalar_text(data.get("description"), (*path, "description"))
    return replace(kind.of(data[kind.KEY], type_name, (*path, kind.KEY)), description=description)


def _numbers(raw: Any, keys: tuple[str, str], path: Path) -> tuple[_Number, _Number]:
    data = map_at(raw, path)
    for key in data:
        if key not in keys:
            raise flaw((*path, key), f"Invalid key '{key}' for the constraint", InvalidSchemaError)
    first, second = (_number(data.get(key), (*path, key)) for key in keys)
    if first is None and second is None:
        raise flaw(path, f"{' or '.join(keys)} is needed", InvalidSchemaError)
    return first, second


def _number(raw: Any, path: Path) -> _Number:
    try:
        return None if raw is None else parameter_values.number(raw)
    except ValueError as error:
        raise flaw(path, str(error), InvalidSchemaError) from None
