"""
Bounds that YAQL lacks: its own end at collections handed from one function to the next, so an endless one that is only
counted, or a number or list made at once, could take all memory and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from yaql.language import specs, utils, yaqltypes
from yaql.standard_library import queries

from stoker.hot.bounds import MAX_INTEGER_BITS


def bounded(context: Any) -> Any:
    """A context whose functions of the same names as in ``context`` end."""
    child = context.create_child_context()
    for function in (_sequence, _repeat, _cycle, _generate, _generate_many, _pow, _shift, _list_by_int, _int_by_list):
        child.register_function(function)
    return child


@specs.name("sequence")
@specs.parameter("start", int)
@specs.parameter("step", int)
def _sequence(engine: Any, start: int = 0, step: int = 1) -> Iterator[Any]:
    return _ending(queries.sequence(start, step), engine)


@specs.name("repeat")
@specs.method
@specs.parameter("value", nullable=True)
@specs.parameter("times", int)
def _repeat(engine: Any, value: Any, times: int = -1) -> Iterator[Any]:
    return _ending(queries.repeat(value, times), engine)


@specs.name("cycle")
@specs.method
@specs.parameter("collection", yaqltypes.Iterable())
def _cycle(engine: Any, collection: Iterable[Any]) -> Iterator[Any]:
    return _ending(queries.cycle(collection), engine)


@specs.name("generate")
@specs.parameter("predicate", yaqltypes.Lambda())
@specs.parameter("producer", yaqltypes.Lambda())
@specs.parameter("selector", yaqltypes.Lambda())
@specs.parameter("decycle", bool)
def _generate(
    engine: Any, initial: Any, predicate: Any, producer: Any, selector: Any = None, decycle: bool = False
) -> Iterator[Any]:
    return _ending(queries.generate(engine, initial, predicate, producer, selector, decycle), engine)


@specs.name("generateMany")
@specs.parameter("producer", yaqltypes.Lambda())
@specs.parameter("selector", yaqltypes.Lambda())
@specs.parameter("decycle", bool)
@specs.parameter("depth_first", bool)
def _generate_many(
    engine: Any, initial: Any, producer: Any, selector: Any = None, decycle: bool = False, depth_first: bool = False
) -> Iterator[Any]:
    return _ending(queries.generate_many(engine, initial, producer, selector, decycle, depth_first), engine)


@specs.name("pow")
@specs.parameter("a", yaqltypes.Number())
@specs.parameter("b", yaqltypes.Number())
@specs.parameter("c", yaqltypes.Number(nullable=True))
def _pow(a: Any, b: Any, c: Any = None) -> Any:
    if c is None and isinstance(a, int) and isinstance(b, int) and b > 0:
        _check_bits(a.bit_length() * b)
    return pow(a, b, c)


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
    return left * right  # type: ignore[operator]


@specs.name("#operator_*")
@specs.parameter("left", int)
@specs.parameter("right", yaqltypes.Sequence())
def _int_by_list(left: int, right: Sequence[Any], engine: Any) -> Any:
    return _list_by_int(right, left, engine)


def _ending(items: Iterable[Any], engine: Any) -> Iterator[Any]:
    limited: Iterator[Any] = utils.limit_iterable(items, engine)
    return limited


def _check_bits(bits: int) -> None:
    if bits > MAX_INTEGER_BITS:
        raise ValueError("the number would be too large")
