"""Data in the templates that Stoker writes itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot import Environment
from stoker.hot.calls import LITERAL
from stoker.hot.functions import call_names
from stoker.hot.syntaxes import VERSIONS
from support.scope import World

names = st.sampled_from(["a", "if", LITERAL, *sorted(call_names())])
data = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=2),
    max_leaves=8,
)


@settings(max_examples=200)
@given(value=data, version=st.sampled_from(sorted(VERSIONS)))
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
