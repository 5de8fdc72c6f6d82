"""Evaluation as a whole: plain data, nesting, what is not known yet, and data that are no calls."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot import UNKNOWN, Budget, Environment
from stoker.hot.calls import LITERAL
from stoker.hot.functions import call_names
from stoker.hot.syntaxes import VERSIONS
from support.scope import World

keys = st.text(max_size=5).filter(lambda key: key not in call_names())
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=100)
@given(plain)
def test_plain_data_stays_as_it_is(value: Any) -> None:
    before = copy.deepcopy(value)
    assert hot.evaluate(value, Everything()) == before
    assert value == before
    assert hot.references(value) == frozenset()


@settings(max_examples=100)
@given(plain, st.text(max_size=3), st.integers(0, 3))
def test_calls_at_any_place_are_evaluated(value: Any, name: str, wraps: int) -> None:
    written: Any = {"get_resource": name}
    expected: Any = f"id of {name}"
    for _ in range(wraps):
        written, expected = {"a": [value, written], "b": 1}, {"a": [value, expected], "b": 1}
    assert hot.evaluate(written, Everything()) == expected
    assert hot.references(written) == {name}


class Everything:
    """Knows a parameter and a resource of every name, and attributes not at all."""

    version = "2018-08-31"
    budget = Budget()

    def parameter(self, name: str) -> Any:
        return f"value of {name}"

    def resource_id(self, name: str) -> Any:
        return f"id of {name}"

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any:
        return UNKNOWN

    def file(self, name: str) -> str:
        return f"text of {name}"


def test_nested_functions_are_evaluated_first() -> None:
    inner = {"list_join": [",", [{"get_param": "p"}, {"get_resource": "r"}]]}
    value = {"str_replace": {"template": {"get_file": "f"}, "params": {"text": inner}}}
    assert hot.evaluate(value, Everything()) == "value of p,id of r of f"


ATTRIBUTE = {"get_attr": ["r", "a"]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ATTRIBUTE, UNKNOWN),
        ({"a": [ATTRIBUTE], "b": "x"}, {"a": [UNKNOWN], "b": "x"}),
        ({"list_join": [",", ["a", ATTRIBUTE]]}, UNKNOWN),
        ({"str_replace": {"template": "x", "params": {"x": {"deep": [{"list_join": ["", [ATTRIBUTE]]}]}}}}, UNKNOWN),
        ({"get_param": [ATTRIBUTE]}, UNKNOWN),
        ({"get_attr": ["r", ATTRIBUTE]}, UNKNOWN),
        ({"get_file": ATTRIBUTE}, UNKNOWN),
        ([{"list_join": [",", ["a"]]}, ATTRIBUTE], ["a", UNKNOWN]),
    ],
)
def test_a_function_of_an_unknown_value_is_unknown(value: Any, expected: Any) -> None:
    assert hot.evaluate(value, Everything()) == expected


@pytest.mark.parametrize("version", ["2013-05-23", "2018-08-31"])
def test_a_path_into_an_unknown_value_is_unknown(version: str) -> None:
    scope = World(version, parameters={"p": UNKNOWN})
    assert hot.evaluate({"get_param": ["p", "x"]}, scope) is UNKNOWN
    scope = Everything()
    scope.version = version
    assert hot.evaluate({"get_attr": ["r", "a", "x"]}, scope) is UNKNOWN


def test_unknown_stays_the_same_object_when_copied() -> None:
    assert copy.deepcopy([UNKNOWN])[0] is UNKNOWN
    assert repr(UNKNOWN) == "UNKNOWN"


def test_references_in_arguments_are_found() -> None:
    value = {"list_join": [",", [{"get_attr": ["a", "x", {"get_resource": "b"}]}, {"get_param": "c"}]], "z": 1}
    assert hot.references(value) == {"a", "b"}


#: Keys of data in the templates that Stoker writes itself.
literal_keys = st.sampled_from(["a", "if", LITERAL, *sorted(call_names())])
literals = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | literal_keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(literal_keys, inner, max_size=2),
    max_leaves=8,
)


@settings(max_examples=200)
@given(value=literals, version=st.sampled_from(sorted(VERSIONS)))
def test_any_literal_data_evaluates_to_itself(value: Any, version: str) -> None:
    """Through all that a template goes through: parse, decide, files, evaluate."""
    files = {"a": "text"}
    said = {"heat_template_version": version, "outputs": {"o": {"value": hot.literal(value)}}}
    said["resources"] = {"r": {"type": "x", "properties": {"p": hot.literal(value)}, "metadata": {"m": 1}}}
    template = hot.parse(said, files)
    parameters = hot.bind(template, Environment(), pseudo={})
    decided = hot.decide(template, parameters, files)
    assert hot.evaluate(decided.outputs["o"].value, World(version)) == value
    resource = hot.inline_files(decided.resources["r"], files)
    assert resource.requires == frozenset()
    assert hot.evaluate(resource.properties, World(version)) == {"p": value}


@pytest.mark.parametrize("value", [1, "get_param", {"a": 1}, {"get_param": 1, "b": 2}, ["if"], {}])
def test_data_that_is_no_call_stays_unchanged(value: Any) -> None:
    assert hot.literal(value) is value
