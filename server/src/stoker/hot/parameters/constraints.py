"""
Constraints of parameters, one class per kind. ``problem`` describes why a value violates the constraint, or is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from stoker.hot.flaw import flaw, list_at, map_at, scalar_text
from stoker.hot.parameters import values
from stoker.hot.parameters.custom import CHECKS
from stoker.hot.paths import Path
from stoker.hot.regex import BadPattern, compile_pattern
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import InvalidSchemaError

_SCALARS = frozenset(("string", "number", "boolean", "comma_delimited_list"))
_Number: TypeAlias = "int | float | None"


class Constraint(Protocol):
    """A kind of constraint: its key in templates, the parameter types that may have it, and its first version."""

    KEY: ClassVar[str]
    TYPES: ClassVar[frozenset[str]]
    SINCE: ClassVar[str]

    @classmethod
    def of(cls, raw: Any, type_name: str, path: Path, /) -> Constraint:
        """Build a constraint from its definition in the template at ``path``. Raises a flaw."""
        ...

    def problem(self, value: Any) -> str | None:
        """The reason why ``value`` violates the constraint; None if it does not."""
        ...

    def to_json(self) -> Mapping[str, Any]:
        """The constraint with the names of Heat's ``validate``."""
        ...


@dataclass(frozen=True, slots=True)
class Length:
    """Limits of the length of a text, list or map."""

    KEY: ClassVar[str] = "length"
    TYPES: ClassVar[frozenset[str]] = frozenset(("string", "comma_delimited_list", "json"))
    SINCE: ClassVar[str] = ""

    min: _Number
    max: _Number

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Length:
        return cls(*_numbers(raw, ("min", "max"), path))

    def problem(self, value: Any) -> str | None:
        length = len(value) if isinstance(value, (str, list, dict)) else len(str(value))
        if _within(length, self.min, self.max):
            return None
        return f"length ({length}) is out of range (min: {self.min}, max: {self.max})"

    def to_json(self) -> Mapping[str, Any]:
        return {"MinLength": self.min, "MaxLength": self.max}


@dataclass(frozen=True, slots=True)
class Range:
    """Limits of a number."""

    KEY: ClassVar[str] = "range"
    TYPES: ClassVar[frozenset[str]] = frozenset(("number",))
    SINCE: ClassVar[str] = ""

    min: _Number
    max: _Number

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Range:
        return cls(*_numbers(raw, ("min", "max"), path))

    def problem(self, value: Any) -> str | None:
        if _within(value, self.min, self.max):
            return None
        return f"{value} is out of range (min: {self.min}, max: {self.max})"

    def to_json(self) -> Mapping[str, Any]:
        return {"MinValue": self.min, "MaxValue": self.max}


@dataclass(frozen=True, slots=True)
class Modulo:
    """A number must be a multiple of ``step``, plus ``offset``."""

    KEY: ClassVar[str] = "modulo"
    TYPES: ClassVar[frozenset[str]] = frozenset(("number",))
    SINCE: ClassVar[str] = "2017-02-24"

    step: int | float
    offset: int | float

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Modulo:
        step, offset = _numbers(raw, ("step", "offset"), path)
        if not step:
            raise flaw(path, "step must be a number other than 0", InvalidSchemaError)
        if abs(offset or 0) >= abs(step):
            raise flaw(path, "offset must be smaller than step", InvalidSchemaError)
        return cls(step, offset or 0)

    def problem(self, value: Any) -> str | None:
        try:
            fits = value % self.step == self.offset % self.step
        except OverflowError:
            fits = False
        return None if fits else f"{value} is not a multiple of {self.step} with an offset of {self.offset}"

    def to_json(self) -> Mapping[str, Any]:
        return {"Step": self.step, "Offset": self.offset}


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """A value, or each item of a list, must be one of ``allowed``."""

    KEY: ClassVar[str] = "allowed_values"
    TYPES: ClassVar[frozenset[str]] = _SCALARS
    SINCE: ClassVar[str] = ""

    allowed: tuple[Any, ...]

    @classmethod
    def of(cls, raw: Any, type_name: str, path: Path) -> AllowedValues:
        item_type = "string" if type_name == "comma_delimited_list" else type_name
        try:
            return cls(tuple(values.convert(item_type, item) for item in list_at(raw, path)))
        except ValueError as error:
            raise flaw(path, str(error), InvalidSchemaError) from None

    def problem(self, value: Any) -> str | None:
        for item in value if isinstance(value, list) else [value]:
            if item not in self.allowed:
                return f"{item} is not an allowed value [{', '.join(map(str, self.allowed))}]"
        return None

    def to_json(self) -> Mapping[str, Any]:
        return {"AllowedValues": list(self.allowed)}


@dataclass(frozen=True, slots=True)
class AllowedPattern:
    """A text must match a regular expression."""

    KEY: ClassVar[str] = "allowed_pattern"
    TYPES: ClassVar[frozenset[str]] = frozenset(("string",))
    SINCE: ClassVar[str] = ""

    #: As text, because compiled patterns are large and a template, which is kept in memory, may have thousands.
    pattern: str
    #: Number of instructions of the compiled pattern.
    size: int

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> AllowedPattern:
        if not isinstance(raw, str):
            raise flaw(path, f"a regular expression is needed, not {kind_of(raw)}", InvalidSchemaError)
        try:
            return cls(raw, compile_pattern(raw).size)
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


@dataclass(frozen=True, slots=True)
class Custom:
    """A named check. Checks that need a cloud or a clock are accepted but not executed: this package uses no I/O."""

    KEY: ClassVar[str] = "custom_constraint"
    TYPES: ClassVar[frozenset[str]] = _SCALARS
    SINCE: ClassVar[str] = ""

    name: str

    @classmethod
    def of(cls, raw: Any, _type_name: str, path: Path) -> Custom:
        if not isinstance(raw, str):
            raise flaw(path, f"a name is needed, not {kind_of(raw)}", InvalidSchemaError)
        return cls(raw)

    def problem(self, value: Any) -> str | None:
        check = CHECKS.get(self.name)
        for item in value if isinstance(value, list) else [value]:
            if check and not check(str(item)):
                return f"{quote_word(item)} does not validate {self.name}"
        return None

    def to_json(self) -> Mapping[str, Any]:
        return {"CustomConstraint": self.name}


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint with the author's message for its violation."""

    constraint: Constraint
    description: str = ""

    def problem(self, value: Any, *, hidden: bool = False) -> str | None:
        """The message for the user, or None; a hidden value is not repeated."""
        problem = self.constraint.problem(value)
        if problem and hidden and not self.description:
            return f"the value does not satisfy its {self.constraint.KEY}"
        return problem and (self.description or problem)


_KINDS: tuple[type[Constraint], ...] = (Range, Length, Modulo, AllowedValues, AllowedPattern, Custom)


def parse_rule(raw: Any, type_name: str, version: str, path: Path) -> Rule:
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
    return Rule(kind.of(data[kind.KEY], type_name, (*path, kind.KEY)), description)


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
        return None if raw is None else values.number(raw)
    except ValueError as error:
        raise flaw(path, str(error), InvalidSchemaError) from None


def _within(value: int | float, low: _Number, high: _Number) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)
