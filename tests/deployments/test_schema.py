"""Entries of inputs and outputs, in Heat's stored form."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker.deployments import schema
from stoker.model.errors import Invalid


@pytest.mark.parametrize(
    ("entry", "stored"),
    [
        ({"name": "a"}, {"name": "a", "type": "String"}),
        ({"name": "n", "type": "Number", "default": "3"}, {"name": "n", "type": "Number", "default": 3}),
        ({"name": "n", "type": "Number", "default": ""}, {"name": "n", "type": "Number", "default": ""}),
        ({"name": "a", "replace_on_change": False}, {"name": "a", "type": "String"}),
        ({"name": "a", "replace_on_change": True}, {"name": "a", "type": "String", "replace_on_change": True}),
        ({"name": "a", "default": [False]}, {"name": "a", "type": "String", "default": [False]}),
        ({"name": "a", "type": "String", "default": False}, {"name": "a", "type": "String", "default": False}),
        ({"name": "a", "value": None}, {"name": "a", "type": "String", "value": None}),
        ({"name": "a", "description": None}, {"name": "a", "type": "String"}),
        ({"name": "a", "description": 5}, {"name": "a", "type": "String", "description": "5"}),
        (
            {"name": "l", "type": "CommaDelimitedList", "default": "a,b"},
            {"name": "l", "type": "CommaDelimitedList", "default": ["a", "b"]},
        ),
        ({"name": "j", "type": "Json", "default": "[1]"}, {"name": "j", "type": "Json", "default": [1]}),
        ({"name": "b", "type": "Boolean", "default": "on"}, {"name": "b", "type": "Boolean", "default": True}),
    ],
)
def test_inputs_are_stored_as_heat_does(entry, stored):
    assert schema.inputs([entry]) == (stored,)


def test_outputs_keep_their_flag_also_when_false():
    assert schema.outputs([{"name": "o"}]) == ({"name": "o", "type": "String", "error_output": False},)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a": 1}, "inputs must be a list of maps, not dict"),
        (["a"], r"inputs\[0\] must be a map with a name, not str"),
        ([{}], r"inputs\[0\] needs a name"),
        ([{"name": 5}], r"inputs\[0\] needs a name"),
        ([{"name": "a", "typ": "x"}], r"inputs\[0\] has the unknown key 'typ'"),
        ([{"name": "a", "type": "string"}], r"inputs\[0\].type 'string' is none of String"),
        ([{"name": "a"}, {"name": "a"}], "inputs names an entry twice"),
        ([{"name": "n", "type": "Number", "default": "x"}], r'inputs\[0\].default: "x" is not a number'),
        ([{"name": "a", "description": [1]}], r"inputs\[0\].description: text is needed, not a list"),
        ([{"name": "a", "replace_on_change": "maybe"}], r'inputs\[0\].replace_on_change: "maybe" is not a boolean'),
    ],
)
def test_invalid_inputs_and_outputs_are_named(entries, message):
    with pytest.raises(Invalid, match=message):
        schema.inputs(entries)


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "default", "value", "x", "error_output"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(anything)
@example([{"name": "a", "default": False}])
@example([{"name": "a", "default": []}])
def test_any_definition_is_stored_or_refused(value):
    for read in (schema.inputs, schema.outputs):
        try:
            once = read(value)
        except Invalid:
            continue
        assert read(list(once)) == once
