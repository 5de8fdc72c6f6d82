"""What each function gives, version by version, and that the folder keeps its promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot.functions import all_functions
from stoker.hot.syntaxes import VERSIONS
from stoker.model.errors import StackValidationFailed, UserParameterMissing
from support.scope import World

FUNCTIONS = {name: item for name, item in all_functions().items() if not name.startswith("Fn::")}
OLDEST, NEWEST = min(VERSIONS), max(VERSIONS)
words = st.text("abc", min_size=1, max_size=3)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_states_its_versions_and_describes_itself(name: str) -> None:
    function = FUNCTIONS[name]
    assert name in function.description or name == "get_file"  # in Heat's words
    assert function.since in ("", *VERSIONS)
    assert function.until is None or function.until in ("", *VERSIONS)


def test_only_a_map_with_a_single_key_is_a_call() -> None:
    for data in ({"digest": 1, "x": 2}, {"equals": [1, 2]}, {"Get_param": "x"}, {}, ["get_param", "x"]):
        assert hot.evaluate(data, World()) == data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ([], {"a": {"b": [10, {"c": 20}]}, "s": "text", "n": None}),
        (["a", "b", 0], 10),
        (["a", "b", "1", "c"], 20),
        (["a", "b", -1, "c"], 20),
        (["n"], None),
        (["s", 0], "t"),
        (["missing"], ""),
        (["a", "b", 2], ""),
        (["a", "b", "x"], ""),
        (["a", "b", 0, "x"], ""),
        (["n", "x"], ""),
        (["a", "b", True], ""),
        (["a", "b", 0.9], ""),
        (["a", "b", "0_1"], ""),
        (["a", "b", "9" * 5000], ""),
        (["a", ["b"]], ""),
        ([{"get_param": "key"}, "b", 0], 10),
    ],
)
def test_get_param_follows_a_path_or_returns_empty_text(path: list[Any], value: Any) -> None:
    deep = {"a": {"b": [10, {"c": 20}]}, "s": "text", "n": None}
    assert hot.evaluate({"get_param": ["p", *path]}, World(parameters={"p": deep, "key": "a"})) == value


def test_get_param_of_an_undefined_parameter_is_an_error() -> None:
    with pytest.raises(UserParameterMissing, match=r"The Parameter \(x\) was not provided\."):
        hot.evaluate({"get_param": "x"}, World())


def test_the_result_of_a_function_is_never_evaluated() -> None:
    trap = {"get_param": "secret"}
    scope = World(parameters={"p": trap, "secret": "s"}, ids={"r": trap}, attributes={"r": {"a": trap}})
    for call in ({"get_param": "p"}, {"get_resource": "r"}, {"get_attr": ["r", "a"]}):
        assert hot.evaluate([call], scope) == [trap]


def test_get_attr_leaves_the_path_to_the_resource_since_juno() -> None:
    for version, asked in ((OLDEST, ("r", "a", ())), ("2014-10-16", ("r", "a", ("k", 1)))):
        scope = World(version, attributes={"r": {"a": {"k": [1, 2]}}})
        assert hot.evaluate({"get_attr": ["r", "a", "k", 1]}, scope) == 2
        assert scope.asked == [asked]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_get_attr_of_a_missing_path_is_null(version: str) -> None:
    scope = World(version, attributes={"r": {"a": {"k": [1]}}})
    for path in (["x"], ["k", 5], ["k", 0, "x"]):
        assert hot.evaluate({"get_attr": ["r", "a", *path]}, scope) is None


def test_get_attr_without_an_attribute_returns_all_since_liberty() -> None:
    attributes = {"r": {"a": 1, "b": 2}}
    assert hot.evaluate({"get_attr": ["r"]}, World("2015-10-15", attributes=attributes)) == {"a": 1, "b": 2}
    with pytest.raises(StackValidationFailed, match="get_attr"):
        hot.evaluate({"get_attr": ["r"]}, World("2015-04-30", attributes=attributes))


def test_get_file_returns_the_raw_text() -> None:
    scope = World(files={"f": "{get_param: x}"}, parameters={"name": "f"})
    assert hot.evaluate({"get_file": "f"}, scope) == "{get_param: x}"
    assert hot.evaluate({"get_file": {"get_param": "name"}}, scope) == "{get_param: x}"
    with pytest.raises(StackValidationFailed, match=r"No content found .* get_file path: g"):
        hot.evaluate({"get_file": "g"}, scope)


def test_before_liberty_str_replace_accepts_only_scalars() -> None:
    def replaced(version: str, value: Any) -> Any:
        return hot.evaluate({"str_replace": {"template": "x", "params": {"x": value}}}, World(version))

    assert [replaced("2015-04-30", value) for value in (None, 1, True)] == ["", "1", "True"]
    assert replaced("2015-10-15", [1]) == "[1]"
    with pytest.raises(StackValidationFailed, match='"x" must be text or a number, not a list'):
        replaced("2015-04-30", [1])


@settings(max_examples=100)
@given(st.text("abcX", max_size=12), st.dictionaries(words, st.text("abcX", max_size=4), max_size=4))
def test_str_replace_follows_its_definition_for_any_words(template: str, params: dict[str, str]) -> None:
    def replaced(params: dict[str, str]) -> Any:
        return hot.evaluate({"str_replace": {"template": template, "params": params}}, World())

    assert replaced(params) == by_recursion(template, sorted(params, key=lambda word: (-len(word), word)), params)
    assert replaced({word: value for word, value in params.items() if word not in template}) == template


def by_recursion(text: str, keys: list[str], params: dict[str, str]) -> str:
    """The rule as it is told: split by the first word, deal with the parts, join by its value."""
    if not keys:
        return text
    first, *rest = keys
    return params[first].join(by_recursion(part, rest, params) for part in text.split(first))


def test_many_replacement_words_do_not_exhaust_the_call_stack() -> None:
    params = {f"<{i}>": "" for i in range(3000)}
    assert hot.evaluate({"str_replace": {"template": "".join(params), "params": params}}, World()) == ""


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ([",", ["a"], ["b"]], "several lists only from version 2015-10-15"),
        ([",", [["a"]]], "items must be text, not a list"),
    ],
)
def test_before_liberty_list_join_joins_one_list_of_text(argument: Any, words: str) -> None:
    with pytest.raises(StackValidationFailed, match=words):
        hot.evaluate({"list_join": argument}, World("2015-04-30"))


@pytest.mark.parametrize(
    "bomb",
    [
        lambda text: {"str_replace": {"template": text, "params": {"x": text}}},
        lambda text: {"list_join": [text, [""] * 10_000]},
        lambda text: [{"get_param": "long"}] * 10_000,
        lambda text: {"list_join": [",", [{"get_param": "long"}] * 10_000]},
        lambda text: {"str_replace": {"template": "x", "params": {"x": [{"get_param": "long"}] * 10_000}}},
    ],
    ids=["replace", "delimiter", "repeat", "join", "json"],
)
def test_a_short_template_cannot_produce_gigabytes(bomb: Callable[[str], Any]) -> None:
    long = "x" * 10_000
    with pytest.raises(StackValidationFailed, match=r"too large|longer than"):
        hot.evaluate(bomb(long), World(parameters={"long": long}))


def test_a_value_too_deep_for_json_is_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(StackValidationFailed, match="more than 250 levels"):
        hot.evaluate({"list_join": [",", [{"get_attr": ["r", "a"]}]]}, World(attributes={"r": {"a": deep}}))
