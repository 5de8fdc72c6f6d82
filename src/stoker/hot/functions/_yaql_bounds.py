"""
Limits that YAQL lacks within one call.

YAQL limits the collections that functions pass to each other. An endless collection that is only counted, or a number,
list or text that one function creates, could still use all memory and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from yaql.language import specs, utils, yaqltypes
from yaql.standard_library import queries

from stoker.hot.bounds import MAX_INTEGER_BITS

#: Maximum characters of a text that one function creates; YAQL's own quota refuses longer ones only after their
#: creation.
MAX_TEXT = 10_000
#: Maximum digits before or after the point for rounding; no number has more.
_MOST_DIGITS = 400


def bound_context(context: Any) -> Any:
    """A context that overrides functions of ``context`` with limited versions."""
    child = context.create_child_context()
    for function in _FUNCTIONS:
        child.register_function(function)
    return child


@specs.name("sequence")
@specs.parameter("start", int)
@specs.parameter("step", int)
def _sequence(engine: Any, start: int = 0, step: int = 1) -> Iterator[Any]:
    return _limit(queries.sequence(start, step), engine)


@specs.name("repeat")
@specs.method
@specs.parameter("value", nullable=True)
@specs.parameter("times", int)
def _repeat(engine: Any, value: Any, times: int = -1) -> Iterator[Any]:
    return _limit(queries.repeat(value, times), engine)


@specs.name("cycle")
@specs.method
@specs.parameter("collection", yaqltypes.Iterable())
def _cycle(engine: Any, collection: Iterable[Any]) -> Iterator[Any]:
    return _limit(queries.cycle(collection), engine)


@specs.name("generate")
@specs.parameter("predicate", yaqltypes.Lambda())
@specs.parameter("producer", yaqltypes.Lambda())
@specs.parameter("selector", yaqltypes.Lambda())
@specs.parameter("decycle", bool)
def _generate(
    engine: Any, initial: Any, predicate: Any, producer: Any, selector: Any = None, decycle: bool = False
) -> Iterator[Any]:
    return _limit(queries.generate(engine, initial, predicate, producer, selector, decycle), engine)


@specs.name("generateMany")
@specs.parameter("producer", yaqltypes.Lambda())
@specs.parameter("selector", yaqltypes.Lambda())
@specs.parameter("decycle", bool)
@specs.parameter("depth_first", bool)
def _generate_many(
    engine: Any, initial: Any, producer: Any, selector: Any = None, decycle: bool = False, depth_first: bool = False
) -> Iterator[Any]:
    return _limit(queries.generate_many(engine, initial, producer, selector, decycle, depth_first), engine)


@specs.name("pow")
@specs.parameter("a", yaqltypes.Number())
@specs.parameter("b", yaqltypes.Number())
@specs.parameter("c", yaqltypes.Number(nullable=True))
def _pow(a: Any, b: Any, c: Any = None) -> Any:
    if c is None and isinstance(a, int) and isinstance(b, int) and b > 0:
        _check_bits(a.bit_length() * b)
    for number in (a, b, c):
        if isinstance(number, int):
            _check_bits(number.bit_length())
    return pow(a, b, c)


@specs.name("round")
@specs.parameter("number", yaqltypes.Number())
@specs.parameter("ndigits", int)
def _round(number: Any, ndigits: int = 0) -> Any:
    # Python first computes a power of ten with that many digits.
    return round(number, max(-_MOST_DIGITS, min(ndigits, _MOST_DIGITS)))


@specs.name("shiftBitsLeft")
@specs.parameter("value", int)
@specs.parameter("bits_number", int)
def _shift(value: int, bits_number: int) -> int:
    _check_bits(value.bit_length() + bits_number)
    return value << bits_number


@specs.name("#operator_*")
@specs.parameter("left", yaqltypes.Sequence())
@specs.parameter("right", int)
def _list_by_int(left: Sequence[Any], right: int, engine: Any) -> Any:
    if len(left) * right > utils.get_max_collection_size(engine):
        raise ValueError(f"a list of {len(left) * right} items is too long")
    return left * right  # type: ignore[operator]  # YAQL passes a list or a tuple


@specs.name("#operator_*")
@specs.parameter("left", int)
@specs.parameter("right", yaqltypes.Sequence())
def _int_by_list(left: int, right: Sequence[Any], engine: Any) -> Any:
    return _list_by_int(right, left, engine)


@specs.name("replace")
@specs.method
@specs.parameter("string", yaqltypes.String())
@specs.parameter("old", yaqltypes.String())
@specs.parameter("new", yaqltypes.String())
@specs.parameter("count", int)
def _replace(string: str, old: str, new: str, count: int = -1) -> str:
    return _checked_replace(string, old, new, count)


@specs.name("replace")
@specs.method
@specs.parameter("string", yaqltypes.String())
@specs.parameter("replacements", utils.MappingType)
@specs.inject("str_func", yaqltypes.Delegate("str"))
@specs.parameter("count", int)
def _replace_all(string: str, str_func: Any, replacements: Mapping[Any, Any], count: int = -1) -> str:
    for old, new in replacements.items():
        string = _checked_replace(string, str_func(old), str_func(new), count)
    return string


def _checked_replace(text: str, old: str, new: str, count: int) -> str:
    times = text.count(old) if count < 0 else min(count, text.count(old))
    if len(text) + times * (len(new) - len(old)) > MAX_TEXT:
        raise ValueError(f"the text would be too long: more than {MAX_TEXT} characters")
    return text.replace(old, new, count)


def _limit(items: Iterable[Any], engine: Any) -> Iterator[Any]:
    limited: Iterator[Any] = utils.limit_iterable(items, engine)
    return limited


def _check_bits(bits: int) -> None:
    if bits > MAX_INTEGER_BITS:
        raise ValueError("the number would be too large")


_FUNCTIONS = (
    _sequence,
    _repeat,
    _cycle,
    _generate,
    _generate_many,
    _pow,
    _round,
    _shift,
    _list_by_int,
    _int_by_list,
    _replace,
    _replace_all,
)
