"""Whatever parameters are declared to be and given, they are of their type or refused; environments likewise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot import Environment
from stoker.hot.constraints import CHECKS
from stoker.hot.syntaxes import VERSIONS
from stoker.hot.text import check_plain
from stoker.model.errors import Invalid
from stoker.store import rows
from support.search import at_once, examples

pytestmark = pytest.mark.slow

TYPES = ("string", "number", "comma_delimited_list", "json", "boolean")
WORDS = [
    "", "a", "a,b", "1", "1.5", "-1", " 1 ", "1_0", "²", "1e5", "1e400", "9" * 400, "nan", "inf", "true", "no", "{}",
    '{"a": 1}', "[1]", "[" * 3000, "NaN", '"\\ud800"', "a\0b", "\ud800", "(", "a*", "[a-z]+", "::1", "10.0.0.0/8",
    "2020-01-01", "* * * * *", "aa:bb:cc:dd:ee:ff", "a.b", "x" * 2000, "ä",
]  # fmt: skip
texts = st.sampled_from(WORDS) | st.text(max_size=5)
numbers = st.integers(-3, 10) | st.sampled_from([0.0, 1.5, -0.5, 2**64, 10**300, 1e308, float("inf"), float("nan")])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
bounds = st.fixed_dictionaries({}, optional={name: numbers | values for name in ("min", "max")})
constraints = st.one_of(
    st.fixed_dictionaries({"length": bounds}),
    st.fixed_dictionaries({"range": bounds}),
    st.fixed_dictionaries({"modulo": st.fixed_dictionaries({"step": numbers}, optional={"offset": numbers})}),
    st.fixed_dictionaries({"allowed_values": st.lists(values, max_size=3) | values}),
    st.fixed_dictionaries({"allowed_pattern": texts}),
    st.fixed_dictionaries({"custom_constraint": st.sampled_from(sorted(CHECKS)) | texts}),
    values,
)
schemas = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={
        "default": values,
        "constraints": st.lists(constraints, max_size=2),
        "hidden": values,
        "immutable": values,
        "label": values,
        "description": values,
        "tags": values,
    },
)
_KINDS = {"string": str, "number": (int, float), "comma_delimited_list": list, "boolean": bool}


@settings(max_examples=examples(100))
@given(schema=schemas, said=values, version=st.sampled_from(sorted(VERSIONS)))
@at_once()
def test_any_value_fits_its_type_or_is_refused(schema: Any, said: Any, version: str) -> None:
    source = {"heat_template_version": version, "parameters": {"p": schema}}
    try:
        template = hot.parse(source)
        bound = hot.bind(template, Environment(), supplied={"p": said}, pseudo={})
    except Invalid as error:
        assert error.message
        assert len(error.message) < 5_000
        return
    value = bound["p"]
    check_plain(value)
    assert rows.load(rows.dump(bound.to_json())) == bound.to_json()
    assert isinstance(bound.for_display()["p"], str)
    if schema["type"] in _KINDS:
        assert isinstance(value, _KINDS[schema["type"]])
    if schema["type"] == "number":
        assert not isinstance(value, bool)
    # What was accepted is accepted again, and stays the same.
    assert hot.bind(template, Environment(), supplied={"p": value}, pseudo={})["p"] == value or value == ""


registries = st.dictionaries(
    texts | st.sampled_from(["resources", "a*", "*", "base_url"]),
    values | st.dictionaries(
        texts | st.sampled_from(["a*"]),
        st.dictionaries(texts | st.sampled_from(["hooks", "restricted_actions"]),
                        values | st.sampled_from(["pre-create", ["update"], {"b": {"hooks": "pre-delete"}}])),
        max_size=2,
    ),
    max_size=3,
)  # fmt: skip
environments = st.fixed_dictionaries(
    {},
    optional={
        "parameters": st.dictionaries(texts, values, max_size=2) | values,
        "parameter_defaults": st.dictionaries(texts, values, max_size=2) | values,
        "resource_registry": registries | values,
        "event_sinks": values,
        "encrypted_param_names": values,
        "parameter_merge_strategies": st.dictionaries(
            st.sampled_from(["default", "", "a"]), st.sampled_from(["merge", "deep_merge", "overwrite"]) | values
        ),
    },
)


@settings(max_examples=examples(100))
@given(first=environments, second=environments, types=st.dictionaries(texts, st.sampled_from(TYPES), max_size=3))
@at_once()
def test_any_environments_are_merged_or_refused(first: Any, second: Any, types: Any) -> None:
    try:
        merged = Environment.parse(first).merge(Environment.parse(second), types)
        for name in ("a", "OS::Heat::None"):
            merged.registry.resolve(name, "a")
    except Invalid as error:
        assert error.message
        assert len(error.message) < 5_000
        return
    shown = merged.to_json()
    assert rows.load(rows.dump(shown)) == shown
    assert Environment.parse(shown).to_json() == shown
    for name in ("a", "r"):
        assert set(merged.registry.controls(name, "hooks")) <= {f"{when}-{what}" for when in ("pre", "post")
                                                    for what in ("create", "update", "delete")}  # fmt: skip
        assert set(merged.registry.controls(name, "restricted_actions")) <= {"update", "replace"}
        below = merged.registry.below(name)
        below.controls("b", "hooks")
        below.resolve("a", "b")


@pytest.mark.parametrize("name", sorted(CHECKS))
@settings(max_examples=100)
@given(said=texts)
def test_any_text_is_checked_by_every_custom_constraint(name: str, said: str) -> None:
    assert CHECKS[name](said) in (True, False)
