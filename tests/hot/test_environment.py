"""Environments and the registry in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.hot import Environment, Registry
from stoker.model.errors import Invalid, RequestLimitExceeded

SECTIONS = {
    "parameters": {"a": 1},
    "parameter_defaults": {"b": [1]},
    "resource_registry": {"OS::A": "OS::B", "resources": {"r": {"OS::A": "OS::C"}}},
    "event_sinks": [{"type": "zaqar-queue", "target": "q"}],
    "encrypted_param_names": ["a"],
}


@pytest.mark.parametrize("source", [None, {}, "", "---\n", "{}"])
def test_no_text_is_an_empty_environment(source: Any) -> None:
    assert Environment.parse(source) == Environment()
    assert Environment().to_json() == {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {"resources": {}},
        "event_sinks": [],
        "encrypted_param_names": [],
    }


@pytest.mark.parametrize("strategies", [{}, {"parameter_merge_strategies": {"default": "merge"}}])
def test_an_environment_survives_serialization(strategies: dict[str, Any]) -> None:
    sections = SECTIONS | strategies
    environment = Environment.parse(sections)
    assert environment.to_json() == sections
    assert Environment.parse(json.dumps(environment.to_json())) == environment


def test_an_environment_is_read_from_yaml() -> None:
    environment = Environment.parse("parameters:\n  day: 2018-01-01\nresource_registry:\n  OS::X::*: OS::Heat::None\n")
    assert environment.parameters == {"day": "2018-01-01"}
    assert environment.registry.resolve("OS::X::Y") == "OS::Heat::None"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("parameter:\n  a: 1\n", 'environment has wrong section "parameter" (line 1)'),
        ("parameters: {}\nevent_sinks:\n", 'environment has empty section "event_sinks" (line 2)'),
        ({"parameters": []}, "parameters: a map is needed, not a list"),
        ({"event_sinks": {}}, "event_sinks: a list is needed, not a map"),
        ({"parameters": {"a": float("nan")}}, "parameters.a: infinity"),
        ("resource_registry:\n  A: [B]\n", "resource_registry.A: a type's name or null is needed, not a list (line 2)"),
        ({"resource_registry": {"A": ""}}, "a type's name or null is needed"),
        ({"resource_registry": {"resources": []}}, "resource_registry.resources: a map is needed"),
        ({"resource_registry": {"resources": {"r": "x"}}}, "resource_registry.resources.r: a map is needed"),
        ({"resource_registry": {"resources": {"r": {"A": 1}}}}, "resource_registry.resources.r.A: a type's name"),
        ({"resource_registry": {"resources": {"r": {"s": {"A": 1}}}}}, "resources.r.s.A: a type's name"),
        *(
            ({"resource_registry": {"resources": {"r": {control: value}}}}, f"r.{control}: one or a list of these")
            for control in ("hooks", "restricted_actions")
            for value in (1, {"pre-create": True}, "mid-create", ["delete"])
        ),
        ("a: ]", "(line 1)"),
        ("- a", "not a JSON object or YAML mapping"),
        (["a"], "not a JSON object or YAML mapping"),
        ("parameters: {a: 1, a: 2}", 'duplicate key "a"'),
    ],
)
def test_errors_of_an_environment_are_reported(source: Any, words: str) -> None:
    with pytest.raises(Invalid) as caught:
        Environment.parse(source)
    assert caught.value.message.startswith("Environment not in valid format: ")
    assert words in caught.value.message


def test_an_environment_may_be_as_large_as_a_request() -> None:
    Environment.parse("parameters: {a: " + "x" * 600_000 + "}")
    with pytest.raises(RequestLimitExceeded, match="Environment size"):
        Environment.parse("x" * 1_048_577)


def test_the_later_environment_wins_entry_by_entry() -> None:
    earlier = Environment.parse(SECTIONS)
    later = Environment.parse(
        {"parameters": {"a": 2, "c": 3}, "resource_registry": {"OS::A": "OS::D", "OS::E": None}, "event_sinks": []}
    )
    merged = earlier.merge(later)
    assert merged.parameters == {"a": 2, "c": 3}
    assert merged.parameter_defaults == {"b": [1]}
    assert merged.event_sinks == earlier.event_sinks
    assert merged.registry.resolve("OS::A") == "OS::D"
    assert merged.registry.resolve("OS::A", "r") == "OS::C"
    assert merged.registry.resolve("OS::E") is None
    assert Environment().merge(earlier) == earlier.merge(Environment()) == earlier


REGISTRY = Registry(
    {
        "A::One": "B::One",
        "B::*": "C::*",
        "C::Gone": None,
        "D::*": None,
        "D::Kept": "E",
        "D::Deep::*": "F",
        "G": "G",
        "None::*": "None::X",
        "base_url": "file:///",
        "resources": {
            "db": {"A::One": "Z", "hooks": "pre-create", "nested": {"A::One": "no"}},
            "web*": {"A::One": "Y", "A::*": "W"},
            "web1": {"A::One": "X"},
        },
    }
)


@pytest.mark.parametrize(
    ("type_name", "resource", "meant"),
    [
        ("Unmapped", "", "Unmapped"),
        ("A::One", "", "C::One"),
        ("B::Gone", "", None),
        ("D::Any", "", None),
        ("D::Kept", "", "E"),
        ("D::Deep::X", "", "F"),
        ("G", "", "G"),
        ("None::A", "", "None::X"),
        ("base_url", "", "base_url"),
        ("A::One", "db", "Z"),
        ("A::One", "web2", "Y"),
        ("A::One", "web1", "X"),
        ("A::Two", "web1", "W"),
        ("A::Two", "db", "A::Two"),
        ("hooks", "db", "hooks"),
        ("nested", "db", "nested"),
    ],
)
def test_the_registry_maps_types(type_name: str, resource: str, meant: str | None) -> None:
    assert REGISTRY.resolve(type_name, resource) == meant


@pytest.mark.parametrize("entries", [{"A": "B", "B": "A"}, {"A": "B", "B": "C", "C": "B"}, {"*": "x*"}])
def test_circular_mappings_are_reported(entries: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="the mappings of A go round in a circle"):
        Registry(entries).resolve("A")


def test_an_exact_resource_name_overrides_a_pattern() -> None:
    inner = {
        "db": {"in": {"hooks": "pre-create"}, "A": "x"},
        "d*": {"in": {"hooks": "pre-delete"}, "other": {"A": "B"}},
    }
    for named in (inner, dict(reversed(inner.items()))):
        below = Registry({"A": "Z", "resources": named}).below("db")
        assert below.controls("in", "hooks") == ("pre-create",)
        assert (below.resolve("A", "other"), below.resolve("A", "in")) == ("B", "Z")
    assert Registry({"resources": inner}).below("web").controls("in", "hooks") == ()


types = st.sampled_from(["A", "A::B", "A::C", "B", "C"])
targets = types | st.none()
registries = st.dictionaries(types | st.sampled_from(["A::*", "*", "C*"]), targets, max_size=5)


@settings(max_examples=100)
@given(registries, types)
def test_resolving_a_type_twice_gives_the_same_type(entries: dict[str, Any], name: str) -> None:
    registry = Registry(entries)
    try:
        meant = registry.resolve(name)
    except Invalid:
        return
    if meant is not None:
        assert registry.resolve(meant) == meant


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([f"{i}*" for i in range(101)], "at most 100 patterns"),
        (["*" * 256], "at most 255 characters"),
        (["[z-a]"], "is no regular expression"),
    ],
)
def test_patterns_of_resource_names_are_limited_and_validated(names: list[str], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        Environment.parse({"resource_registry": {"resources": {name: {"hooks": "pre-create"} for name in names}}})
    with pytest.raises(Invalid, match=words):
        Environment.parse({"resource_registry": {"resources": {"r": {name: {"a": "b"} for name in names}}}})


#: The types of parameters with values to merge.
MERGED = {"map": "json", "list": "comma_delimited_list", "text": "string", "count": "number", "flag": "boolean"}


def put(old: dict[str, Any], new: dict[str, Any], **strategies: Any) -> Any:
    later = Environment.parse({"parameters": new, "parameter_merge_strategies": strategies})
    return Environment.parse({"parameters": old}).merge(later, MERGED).parameters


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
        # Without the value, which may be that of a hidden parameter.
        ({"count": "many"}, {"count": 1}, {"default": "merge"}, "count: a value is no number$"),
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
        together = together.merge(each, MERGED)
    assert together.parameters == {"text": value}


def test_the_default_strategy_applies_to_its_own_file_only() -> None:
    first, second, third = file({"default": "merge"}, list="x"), file({}, text="b"), file({}, text="c")
    together = first.merge(second, MERGED).merge(third, MERGED)
    assert together.parameters == {"list": "x", "text": "c"}


def test_contradicting_strategies_are_refused() -> None:
    first = Environment.parse({"parameter_merge_strategies": {"map": "merge"}})
    second = Environment.parse({"parameter_merge_strategies": {"map": "deep_merge"}})
    with pytest.raises(Invalid, match="different things of map"):
        first.merge(second, MERGED)
