"""Derived configs: inputs in Heat's order, substitution in structured ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.deployments.derive import derived_inputs, replaces_deployment, substitute
from stoker.model.errors import UserParameterMissing


def test_inputs_are_ordered_declared_undeclared_facts():
    declared = [
        {"name": "a", "type": "Number", "default": 1},
        {"name": "b", "type": "String"},
        {"name": "c", "default": 5},
    ]
    found = derived_inputs(declared, {"b": "x", "more": [1], "c": 0}, {"deploy_action": "CREATE"})

    assert found == (
        {"name": "a", "type": "Number", "default": 1, "value": 1},
        {"name": "b", "type": "String", "value": "x"},
        {"name": "c", "default": 5, "value": 0},
        {"name": "more", "type": "String", "value": [1]},
        {
            "name": "deploy_action",
            "description": "Name of the current action being deployed",
            "type": "String",
            "value": "CREATE",
        },
    )


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        ([{"name": "a", "value": 1}], [{"name": "a", "value": 2, "replace_on_change": True}], True),
        ([{"name": "a", "value": 1}], [{"name": "a", "value": 1, "replace_on_change": True}], False),
        ([{"name": "a", "value": 1}], [{"name": "a", "value": 2}], False),
        ([], [{"name": "a", "value": 2, "replace_on_change": True}], False),
    ],
)
def test_only_a_changed_marked_input_replaces(before, after, replaced):
    assert replaces_deployment(before, after) is replaced


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_values_without_input_names_stay_unchanged(value):
    assert substitute(value, {}, key="get_input-not-used", strict=True) == value


def test_every_map_with_only_the_key_is_replaced():
    config = {"a": {"get_input": "x"}, "b": [{"get_input": "y"}, {"get_input": "x", "z": 1}], "c": {"get_input": 5}}
    found = substitute(config, {"x": {"deep": 1}}, key="get_input", strict=False)

    assert found == {"a": {"deep": 1}, "b": [None, {"get_input": "x", "z": 1}], "c": {"get_input": 5}}


def test_in_strict_mode_an_unknown_name_is_an_error():
    with pytest.raises(UserParameterMissing, match=r"The Parameter \(y\) was not provided"):
        substitute([{"get_input": "y"}], {}, key="get_input", strict=True)
