"""What the functions that make values of values give, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from stoker import hot
from stoker.hot import UNKNOWN
from stoker.hot.functions import all_functions
from stoker.model.errors import InvalidTemplateVersion, RequestLimitExceeded, StackValidationFailed
from support.scope import World
from support.templates import document

NEWEST = "2021-04-16"


#: Calls and their values.
EXAMPLES: list[tuple[dict[str, Any], Any]] = [
    ({"digest": ["sha256", "abc"]}, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ({"digest": ["MD5", "abc"]}, "900150983cd24fb0d6963f7d28e17f72"),
    ({"str_split": [",", "a,b,c"]}, ["a", "b", "c"]),
    ({"str_split": [",", "a,b,c", 1]}, "b"),
    ({"str_split": [",", "a,b,c", "2"]}, "c"),
    ({"str_split": [",", "a,b,c", -1]}, "c"),
    ({"str_split": [",", None]}, None),
    ({"str_split": [", ", ""]}, [""]),
    ({"map_merge": [{"a": 1, "b": 1}, None, {"b": 2}]}, {"a": 1, "b": 2}),
    ({"map_merge": []}, {}),
    ({"map_merge": [{"a": {"x": 1}}, {"a": {"y": 2}}]}, {"a": {"y": 2}}),
    ({"map_replace": [{"a": "x", "b": "y"}, {"keys": {"a": "A"}, "values": {"y": 7}}]}, {"A": "x", "b": 7}),
    ({"map_replace": [{"a": ["x"]}, {"values": {"x": 1}}]}, {"a": ["x"]}),
    ({"map_replace": [None, {"keys": {}}]}, {}),
    ({"map_replace": [{"a": 1}, None]}, {"a": 1}),
    ({"map_replace": [{"a": 1}, {"keys": {"a": None}, "values": None}]}, {"a": 1}),
    ({"filter": [["", None, 0], ["a", "", None, 0, "b"]]}, ["a", "b"]),
    ({"filter": [[{"a": [1]}, ["x"]], [{"a": [1]}, {"a": [2]}, ["x"]]]}, [{"a": [2]}]),
    ({"filter": [None, ["a"]]}, ["a"]),
    ({"filter": [["a"], None]}, None),
    ({"list_join": [",", ["a"], "", None, ["b"]]}, "a,b"),
    ({"list_concat": [[1, 2], None, [2, 3]]}, [1, 2, 2, 3]),
    ({"list_concat_unique": [[1, 2], None, [2, {"a": 1}], [{"a": 1}, True]]}, [1, 2, {"a": 1}, True]),
    ({"contains": ["a", ["a", "b"]]}, True),
    ({"contains": ["c", "ab"]}, False),
    ({"str_replace_strict": {"template": "a-b", "params": {"a": 1, "b": None}}}, "1-"),
    ({"str_replace_vstrict": {"template": "a-b", "params": {"a": 0, "b": False}}}, "0-False"),
    ({"repeat": {"template": "port-%p%", "for_each": {"%p%": ["80", "443"]}}}, ["port-80", "port-443"]),
    (
        {"repeat": {"template": {"k-%a%": "%a%%b%"}, "for_each": {"%a%": ["1", "2"], "%b%": ["x", "y"]}}},
        [{"k-1": "1x"}, {"k-1": "1y"}, {"k-2": "2x"}, {"k-2": "2y"}],
    ),
    (
        {"repeat": {"template": "ab", "for_each": {"a": ["1", "2"], "b": ["x", "y"]}, "permutations": False}},
        ["1x", "2y"],
    ),
    ({"repeat": {"template": "%x%", "for_each": {"%x%": {"k": 1, "l": 2}}}}, ["k", "l"]),
    (
        {"repeat": {"template": {"of": "%x%"}, "for_each": {"%x%": [{"a": 1}, [2]]}}},
        [{"of": {"a": 1}}, {"of": [2]}],
    ),
    ({"repeat": {"template": "%x%", "for_each": {"%x%": None}}}, []),
    ({"repeat": {"template": "xy", "for_each": {"x": None, "y": ["a"]}, "permutations": False}}, []),
    (
        {"make_url": {"scheme": "http", "host": "::1", "port": 80, "path": "/a b", "query": {"q": "x/y z"}}},
        "http://[::1]:80/a%20b?q=x/y+z",
    ),
    (
        {
            "make_url": {
                "scheme": "https",
                "username": "u@",
                "password": "p:",
                "host": "h",
                "path": "p",
                "fragment": "f",
            }
        },
        "https://u%40:p%3A@h/p#f",
    ),
    ({"make_url": {"path": "/only"}}, "/only"),
    ({"make_url": {"scheme": "file", "path": "/a?b#c"}}, "file:///a%3Fb%23c"),
    ({"make_url": {"scheme": "redis", "password": "p", "host": "[::1]", "port": "80"}}, "redis://:p@[::1]:80"),
    ({"make_url": {"host": "a b/c"}}, "//a%20b%2Fc"),
    ({"resource_facade": "metadata"}, {"m": 1}),
    ({"yaql": {"expression": "$.data.a.where($ > 1).sum()", "data": {"a": [1, 2, 3]}}}, 5),
    ({"yaql": {"expression": "$.data.items().select($[0])", "data": {"a": 1}}}, ["a"]),
    ({"yaql": {"expression": "$.data"}}, {}),
    ({"yaql": {"expression": "dict($.data.select([$, 1]))", "data": ["x"]}}, {"x": 1}),
    ({"str_replace": {"template": "$a and $ab", "params": {"$a": "1", "$ab": "2"}}}, "1 and 2"),
    ({"str_replace": {"template": "ab", "params": {"a": "b", "b": "c"}}}, "bc"),
    ({"str_replace": {"template": "abcd", "params": {"ab": "1", "bcd": "2"}}}, "a2"),
    ({"str_replace": {"template": "aXa", "params": {"a": "aa"}}}, "aaXaa"),
    ({"str_replace": {"template": "x", "params": {}}}, "x"),
    ({"str_replace": {"template": "a b c d", "params": {"a": None, "b": True, "c": 1, "d": 1.5}}}, " True 1 1.5"),
    (
        {"str_replace": {"template": "m l", "params": {"m": {"b": 1, "a": "é"}, "l": [1, None]}}},
        '{"a": "\\u00e9", "b": 1} [1, null]',
    ),
    ({"list_join": [",", ["a", "b"]]}, "a,b"),
    ({"list_join": ["", []]}, ""),
    ({"list_join": [", ", ["a"], None, ["b", None]]}, "a, b, "),
    ({"list_join": ["-", [{"b": 1, "a": 2}, ["x"]]]}, '{"a": 2, "b": 1}-["x"]'),
    ({"list_join": [{"get_param": "comma"}, {"get_param": "list"}]}, "x"),
]


def scope() -> World:
    return World(NEWEST, parameters={"comma": ",", "list": ["x"], "text": "ab"}, facades={"metadata": {"m": 1}})


@pytest.mark.parametrize(("call", "value"), EXAMPLES)
def test_functions_return_these_values(call: dict[str, Any], value: Any) -> None:
    assert hot.evaluate(call, scope()) == value


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"digest": ["md55", "x"]}, "knows no algorithm"),
        ({"digest": ["md5"]}, "needs a list"),
        ({"digest": ["md5", "☃"]}, "Latin-1"),
        ({"str_split": [",", "a", 1]}, "no part 1, only 0 to 0"),
        ({"str_split": [",", "a", "x"]}, "whole number"),
        ({"str_split": [",", "a,b", -3]}, "no part -3"),
        ({"str_split": [",", "a,b", 1.7]}, "whole number"),
        ({"str_split": [",", "a,b", True]}, "whole number"),
        ({"str_split": [",", "a,b", "1" * 5000]}, "whole number"),
        ({"str_split": [",", ["a"]]}, "a delimiter and a text"),
        ({"map_merge": [[1]]}, "merges maps, not a list"),
        ({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "b"}}]}, 'two keys would be "b"'),
        ({"map_replace": [{"a": 1}, {"kees": {}, "x": 1}]}, "keys"),
        ({"map_replace": [{"a": 1}, {"keys": []}]}, "keys"),
        ({"map_replace": ["", {"keys": {}}]}, "needs a list"),
        ({"filter": ["a", ["a"]]}, "two lists"),
        ({"list_concat": [["a"], "b"]}, "joins lists, not text"),
        ({"contains": [1, "a"]}, "only text"),
        ({"str_replace_strict": {"template": "a", "params": {"b": 1}}}, '"b" does not occur'),
        ({"str_replace_vstrict": {"template": "a", "params": {"a": None}}}, 'the value for "a" is empty'),
        ({"repeat": {"template": "x", "for_each": {"a": "text"}}}, "goes through lists"),
        ({"repeat": {"template": "x-a", "for_each": {"a": [[1]]}}}, "must be text"),
        ({"repeat": {"template": "x-a", "for_each": {"a": [True]}}}, "must be text, not a boolean"),
        ({"repeat": {"template": "x", "for_each": {"a": [1], "b": [1, 2]}, "permutations": False}}, "one length"),
        ({"make_url": {"scheme": "http", "host": "h", "port": 70000}}, "is no port"),
        ({"make_url": {"port": 80}}, 'needs a "host"'),
        ({"make_url": {"host": "h", "port": "1" * 5000}}, "is no port"),
        ({"make_url": {"host": "h", "port": True}}, "is no port"),
        ({"make_url": {"scheme": "http:", "host": "h"}}, "is no scheme"),
        ({"make_url": {"host": "h", "query": {"a": {"b": 1}}}}, '"a" must be text, not a map'),
        ({"make_url": {"color": 1, "host": "h"}}, "needs a map of"),
        ({"resource_facade": "color"}, "needs one of metadata"),
        ({"yaql": {"expression": "$.data.", "data": 1}}, "yaql"),
        ({"yaql": {"expression": "range(100000)", "data": 1}}, "yaql"),
        ({"yaql": {"expression": "$.data.nothing()", "data": 1}}, "nothing"),
        ({"str_replace": {"template": "x"}}, "exactly"),
        ({"str_replace": {"template": "x", "params": {}, "more": 1}}, "exactly"),
        ({"str_replace": {"template": ["x"], "params": {}}}, "template must be text, not a list"),
        ({"str_replace": {"template": {"get_param": "list"}, "params": {}}}, "template must be text, not a list"),
        ({"str_replace": {"template": "x", "params": ["x"]}}, "params must be a map, not a list"),
        ({"str_replace": {"template": "x", "params": {"get_param": "list"}}}, "params must be a map, not a list"),
        ({"str_replace": {"template": "x", "params": {"": "y"}}}, "empty key"),
        ({"list_join": [",", [1]]}, "items must be text, maps or lists, not a number"),
        ({"list_join": [",", [True]]}, "not a boolean"),
        ({"list_join": [",", "ab"]}, "joins lists, not text"),
        ({"list_join": [",", {"get_param": "text"}]}, "joins lists, not text"),
        ({"list_join": [1, ["a"]]}, "delimiter must be text"),
        ({"list_join": [","]}, "at least one list"),
        ({"list_join": {"get_param": "list"}}, "at least one list"),
    ],
)
def test_functions_refuse_these_arguments(call: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StackValidationFailed, match=sentence):
        hot.evaluate(call, scope())


@pytest.mark.parametrize(
    ("template", "for_each", "sentence"),
    [
        ("%a%%b%%c%", dict.fromkeys(("%a%", "%b%", "%c%"), ["x"] * 1_000), "1000000000 copies"),
        ("%a%%b%", {"%a%": ["x"] * 40_000, "%b%": ["y" * 1_000_000]}, '"repeat"'),
        (["%b%z"] * 1_000, {"%b%": ["y" * 1_000_000]}, '"repeat"'),
        ("x", {"%a%": ["x"] * 2_000, "%b%": ["y"] * 2_000}, '"repeat"'),
    ],
    ids=["many", "long items", "long template", "equal"],
)
def test_an_excessive_repetition_is_refused_before_it_is_built(template, for_each, sentence) -> None:
    with pytest.raises(StackValidationFailed, match=sentence):
        hot.evaluate({"repeat": {"template": template, "for_each": for_each}}, World(NEWEST))


@pytest.mark.parametrize(
    "expression",
    [
        "sequence().len()",
        "sequence(1, 2).where($ < 0).len()",
        "'x'.repeat().len()",
        "[1].cycle().len()",
        "generate(1, true, $ + 1).len()",
        "generateMany(1, [$, $]).len()",
        "pow(9, 99999999)",
        "shiftBitsLeft(1, 100000000000)",
        "[1] * 1000000000",
        "1000000000 * [1]",
        "'a' * 1000000000",
    ],
)
def test_an_endless_expression_ends(expression: str) -> None:
    refusals = (StackValidationFailed, RequestLimitExceeded)
    with pytest.raises(refusals, match=r"(?i)yaql.*(exceeds|too large|too long|too much memory)"):
        hot.evaluate({"yaql": {"expression": expression, "data": 1}}, World(NEWEST))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sequence(1, 2).take(3)", [1, 3, 5]),
        ("'x'.repeat(2)", ["x", "x"]),
        ("[1, 2].cycle().take(3)", [1, 2, 1]),
        ("generate(1, $ < 4, $ + 1)", [1, 2, 3]),
        ("generate(1, $ < 4, $ + 1, $ * 2)", [2, 4, 6]),
        ("generateMany('a', $.len() < 2 and [$ + 'b'] or [])", ["a", "ab"]),
        ("pow(2, 10)", 1024),
        ("pow(2, -1)", 0.5),
        ("pow(2, 10, 1000)", 24),
        ("shiftBitsLeft(1, 4)", 16),
        ("[1, 2] * 2", [1, 2, 1, 2]),
        ("2 * [1]", [1, 1]),
        ("2 * 3", 6),
        ("'a' * 3", "aaa"),
    ],
)
def test_a_finite_expression_is_evaluated(expression: str, value: Any) -> None:
    assert hot.evaluate({"yaql": {"expression": expression, "data": 1}}, World(NEWEST)) == value


def test_too_many_words_in_a_long_text_are_refused_at_once() -> None:
    words = [f"w{i:06}" for i in range(50_000)]
    call = {"str_replace": {"template": " ".join(words), "params": dict.fromkeys(words, "x")}}
    with pytest.raises(StackValidationFailed, match="50000 words are too many"):
        hot.evaluate(call, World(NEWEST))


def test_long_lists_are_filtered() -> None:
    """Each with each they would be 10,000,000,000 comparisons."""
    texts, maps = [str(i) for i in range(50_000)], [{"a": i} for i in range(50_000)]
    call = {"filter": [[*texts, *maps], [*maps, "b", *texts]]}
    assert hot.evaluate(call, World(NEWEST)) == ["b"]


def test_every_function_has_an_example() -> None:
    """``test_functions`` has those of the functions that read the scope."""
    elsewhere = {"get_attr", "get_file", "get_param", "get_resource"}
    own = {name for name in all_functions() if not name.startswith("Fn::")}
    assert {name for call, _ in EXAMPLES for name in call} | elsewhere == own


@pytest.mark.parametrize("name", sorted(all_functions()))
def test_unknown_values_stay_unknown(name: str) -> None:
    assert hot.evaluate({name: [UNKNOWN, {"a": UNKNOWN}]}, World(NEWEST)) is UNKNOWN


@pytest.mark.parametrize(
    ("name", "before"),
    [("digest", "2014-10-16"), ("repeat", "2014-10-16"), ("str_split", "2015-04-30"), ("map_merge", "2015-10-15"),
     ("yaql", "2016-04-08"), ("filter", "2016-10-14"), ("make_url", "2017-02-24"), ("contains", "2017-02-24")],
)  # fmt: skip
def test_each_function_needs_its_version(name: str, before: str) -> None:
    with pytest.raises(
        InvalidTemplateVersion, match=f"'{name}' is not supported in template version {before}, only from"
    ):
        hot.parse(document(before, outputs={"o": {"value": {name: ["x"]}}}))


def test_options_of_repeat_need_their_version() -> None:
    maps = {"repeat": {"template": "%x%", "for_each": {"%x%": {"k": 1}}}}
    with pytest.raises(StackValidationFailed, match="goes through lists"):
        hot.evaluate(maps, World("2016-04-08"))
    side = {"repeat": {"template": "a", "for_each": {"a": ["1"]}, "permutations": False}}
    with pytest.raises(StackValidationFailed, match="needs a map of for_each, template"):
        hot.evaluate(side, World("2017-02-24"))
