"""Environments put together, where one says how."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.hot import Environment
from stoker.model.errors import Invalid

TYPES = {"map": "json", "list": "comma_delimited_list", "text": "string", "count": "number", "flag": "boolean"}


def put(old: dict[str, Any], new: dict[str, Any], **strategies: Any) -> Any:
    later = Environment.parse({"parameters": new, "parameter_merge_strategies": strategies})
    return Environment.parse({"parameters": old}).merge(later, TYPES).parameters


@pytest.mark.parametrize(
    ("name", "old", "new", "strategy", "value"),
    [
        ("map", {"a": 1, "b": {"x": 1}}, {"b": {"y": 2}}, "merge", {"a": 1, "b": {"y": 2}}),
        ("map", {"b": {"x": 1, "l": [1]}, "s": "a"}, {"b": {"y": 2, "l": [2]}, "s": "b"}, "deep_merge",
         {"b": {"x": 1, "y": 2, "l": [1, 2]}, "s": "ab"}),
        ("map", '{"a": 1}', {"b": 2}, "merge", {"a": 1, "b": 2}),
        ("map", {"a": 1}, {"a": None, "b": 2}, "merge", {"a": 1, "b": 2}),
        ("map", {"a": {"x": 1}}, {"a": {"x": None}}, "deep_merge", {"a": {"x": 1}}),
        ("text", None, "b", "merge", "b"),
        ("text", "a", None, "overwrite", "a"),
        ("list", "a,b", ["c"], "merge", ["a", "b", "c"]),
        ("text", "a", "b", "merge", "ab"),
        ("count", "1", 2.5, "merge", 3.5),
        ("map", {"a": 1}, {"b": 2}, "overwrite", {"b": 2}),
        ("undefined", "a", "b", "merge", "b"),
    ],
)  # fmt: skip
def test_values_are_merged_by_their_strategy(name: str, old: Any, new: Any, strategy: str, value: Any) -> None:
    assert put({name: old}, {name: new}, **{name: strategy}) == {name: value}
    assert put({name: old}, {name: new}, default=strategy) == {name: value}


def test_without_a_strategy_the_later_value_wins() -> None:
    assert put({"map": {"a": 1}, "x": 1}, {"map": {"b": 2}, "x": 2}) == {"map": {"b": 2}, "x": 2}


@pytest.mark.parametrize(
    ("old", "new", "strategies", "sentence"),
    [
        ({"flag": True}, {"flag": False}, {"flag": "merge"}, "flag is a boolean, which cannot be merged"),
        ({"map": [1]}, {"map": {"a": 1}}, {"map": "merge"}, "only maps can be merged"),
        ({"text": "a"}, {"text": "b"}, {"text": "mix"}, '"mix" is none of overwrite, merge, deep_merge'),
        ({"count": "many"}, {"count": 1}, {"default": "merge"}, "is not a number"),
    ],
)
def test_values_that_cannot_be_merged_are_refused(
    old: Any, new: Any, strategies: dict[str, str], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        put(old, new, **strategies)


def file(strategies: dict[str, Any], **parameters: Any) -> Environment:
    return Environment.parse({"parameters": parameters, "parameter_merge_strategies": strategies})


@pytest.mark.parametrize(
    ("first", "second", "third", "value"),
    [
        ({"text": "merge"}, {}, {}, "abc"),
        ({}, {"text": "merge"}, {}, "abc"),
        ({"default": "merge"}, {}, {}, "abc"),
        ({"default": "merge"}, {"default": "overwrite"}, {}, "abc"),
        ({"count": "merge"}, {"default": "overwrite"}, {}, "c"),
        ({}, {}, {"text": "merge"}, "bc"),
    ],
)
def test_the_strategy_of_a_parameter_applies_to_later_files(first: Any, second: Any, third: Any, value: str) -> None:
    files = [file(first, text="a"), file(second, text="b"), file(third, text="c")]
    together = Environment()
    for each in files:
        together = together.merge(each, TYPES)
    assert together.parameters == {"text": value}


def test_the_default_strategy_applies_to_its_own_file_only() -> None:
    first, second, third = file({"default": "merge"}, list="x"), file({}, text="b"), file({}, text="c")
    together = first.merge(second, TYPES).merge(third, TYPES)
    assert together.parameters == {"list": "x", "text": "c"}


def test_contradicting_strategies_are_refused() -> None:
    first = Environment.parse({"parameter_merge_strategies": {"map": "merge"}})
    second = Environment.parse({"parameter_merge_strategies": {"map": "deep_merge"}})
    with pytest.raises(Invalid, match="different things of map"):
        first.merge(second, TYPES)
