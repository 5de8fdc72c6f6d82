"""Text becomes plain data within bounds, or an error that says where; never anything else. Places have lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot import yaml_text
from stoker.hot.scalars import MAX_DEPTH
from stoker.hot.text import MAX_TEMPLATE, read
from stoker.model.errors import Invalid, RequestLimitExceeded, StokerError
from support.search import examples
from support.templates import template

HEAD = "heat_template_version: 2018-08-31\n"

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)


def load(text: str) -> Any:
    return yaml_text.load(text, 1_000_000)


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2018-08-31", "2018-08-31"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("=", "="),
        ("yes", True),
        ("'yes'", "yes"),
        ("0x1F", 31),
        ("017", 15),
        ("1:30", 90),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", "1e3"),
        ("~", None),
        ("", None),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("! 5", "5"),
        ("!!timestamp 2018-01-01", "2018-01-01"),
        ("{a: &x [1, 2], b: *x}", {"a": [1, 2], "b": [1, 2]}),
        ("[&x one, *x]", ["one", "one"]),
        ("[&x {a: 1, b: 1}, {<<: *x, b: 2}]", [{"a": 1, "b": 1}, {"a": 1, "b": 2}]),
        ("[&x {a: 1}, &y {a: 2, b: 2}, {<<: [*x, *y], c: 3}]", [{"a": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2, "c": 3}]),
        ("[{&m <<: {a: 1}}, *m]", [{"a": 1}, "<<"]),
        ("{'<<': 1}", {"<<": 1}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
    ],
)
def test_yaml_values_have_the_types_of_heat(text: str, value: Any) -> None:
    assert load(text) == value
    assert type(load(text)) is type(value)


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("a: 1\nb:\n  a: 1\n  a: 2\n", 5, 'duplicate key "a"'),
        ("a: {<<: {}, <<: {}}\n", 2, 'duplicate key "<<"'),
        ("\n1: x\n", 3, '"1" needs quotes'),
        ("a:\n  on: x\n", 3, "a boolean"),
        ("~: x\n", 2, "not nothing"),
        ("? [a]\n: x\n", 2, "not a list"),
        ("a: &a {b: 1}\n*a : x\n", 3, "not a map"),
        ("a: .nan\n", 2, "NaN"),
        ("a: -.inf\n", 2, "infinity"),
        ("a: 1.0e+999\n", 2, "infinity"),
        (f"a: 0x{'f' * 5000}\n", 2, "too long"),
        (f"a: {':'.join(['1'] * 5000)}\n", 2, "too long"),
        ("a: 0b_\n", 2, "no int"),
        ("a: !!binary aGk=\n", 2, "!!binary is not supported"),
        ("a: !!python/object:os.system {}\n", 2, "not supported"),
        ("a: !!set {x, y}\n", 2, "!!set is not supported"),
        ("a: !!map [x]\n", 2, "not supported"),
        ("---\nb: 1\n", 2, "one document"),
        ('a: "\\0"\n', 2, "NUL"),
        ("a: \x07\n", 2, "control characters"),
        ("a: \0\n", 2, "control characters"),
        ("a: \ud800\n", 2, "surrogate"),
        ("a: [1\nb: 2\n", 3, "expected"),
        ("a: *nowhere\n", 2, 'no anchor "nowhere"'),
        ("a: &a [*a]\n", 2, "contains itself"),
        ("a: {<<: 1}\n", 2, "merges maps"),
        ("a: {<<: [1]}\n", 2, "merges maps"),
        ("%TAG !x! y\n", 2, "%TAG"),
        (f"a: {'[' * 1000}{']' * 1000}\n", 2, "nested too deeply"),
        (f"a:\n  {'[' * 100_000}", 3, "nested too deeply"),
        ("a:\n  " + '{"a":' * 50_000, 3, "nested too deeply"),
    ],
)
def test_syntax_errors_have_their_line(body: str, line: int, words: str) -> None:
    with pytest.raises(Invalid, match=r"^Template not in valid format: ") as caught:
        hot.parse(HEAD + body)
    assert words in caught.value.message
    assert caught.value.message.endswith(f"(line {line})")


@pytest.mark.parametrize("document", [5, ["a"], "hello", "[1, 2]", "5"])
def test_a_template_must_be_a_map(document: Any) -> None:
    with pytest.raises(Invalid, match="not a JSON object or YAML mapping"):
        hot.parse(document)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "{}"])
def test_an_empty_template_is_refused_without_a_version(text: str) -> None:
    with pytest.raises(Invalid, match="Template format version not found"):
        hot.parse(text)


#: A list that contains itself.
KNOT: list[Any] = []
KNOT += [KNOT, KNOT]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "NaN"),
        (float("inf"), "infinity"),
        (10**400, "too large"),
        (date(2018, 8, 31), "no JSON value"),
        (b"x", "no JSON value"),
        ((1, 2), "no JSON value"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
        ({1: "a"}, '"1" needs quotes'),
        ({None: "a"}, "keys must be text"),
        ({"a\0": 1}, "NUL"),
        ({"\udfff": 1}, "surrogate"),
        (nested(MAX_DEPTH), "nested too deeply"),
        (KNOT, "nested too deeply"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isprintable() else type(value).__name__,
)
def test_a_decoded_template_has_the_same_limits(value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=r"resources\.a") as caught:
        hot.parse(template({"a": value}))
    assert words in caught.value.message


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH])
def test_text_and_data_have_the_same_depth(levels: int) -> None:
    def accepts(source: Any) -> bool:
        try:
            read(source, "Template", MAX_TEMPLATE)
        except Invalid:
            return False
        return True

    value = {"a": nested(levels)}
    text = json.dumps(value)
    assert {accepts(value), accepts(text), accepts(f"# YAML\n{text}")} == {levels < MAX_DEPTH}


def laughs(line: str) -> str:
    """Ten generations, each naming the one before nine times."""
    letters = "abcdefghijk"
    generations = pairwise(letters)
    return "a: &a {k: [x, x, x, x]}\n" + "".join(line.format(old=old, new=new) for old, new in generations)


@pytest.mark.parametrize(
    "line",
    [
        "{new}: &{new} [" + ", ".join(["*{old}"] * 9) + "]\n",
        "{new}: &{new} {{" + ", ".join(f"k{i}: {{{{<<: *{{old}}}}}}" for i in range(9)) + "}}\n",
        "{new}: &{new} {{" + ", ".join(f"k{i}: *{{old}}" for i in range(9)) + "}}\n",
    ],
    ids=["lists", "merges", "maps"],
)
def test_aliases_that_expand_too_far_are_refused(line: str) -> None:
    with pytest.raises(Invalid, match="aliases repeat too much"):
        hot.parse(HEAD + laughs(line))


def test_a_long_text_counts_for_each_of_its_aliases() -> None:
    with pytest.raises(Invalid, match="aliases repeat too much"):
        hot.parse(HEAD + f"description: &a {'x' * 400_000}\nresources: [{', '.join(['*a'] * 10)}]\n")


@pytest.mark.parametrize("text", [HEAD + "#" * MAX_TEMPLATE, "é" * (MAX_TEMPLATE // 2 + 1), "x" * 10_000_000])
def test_a_template_over_the_limit_is_refused_without_parsing(text: str) -> None:
    with pytest.raises(RequestLimitExceeded, match="exceeds maximum allowed size"):
        hot.parse(text)


def test_a_template_at_the_limit_is_accepted() -> None:
    assert hot.parse(HEAD + "#" * (MAX_TEMPLATE - len(HEAD))).version == "2018-08-31"


def test_an_error_does_not_repeat_half_a_megabyte() -> None:
    key = "k" * 200_000
    with pytest.raises(Invalid) as caught:
        hot.parse(f"{HEAD}? {key}\n: 1\n? {key}\n: 1\n")
    assert len(caught.value.message) < 1200
    assert caught.value.message.endswith("(line 4)")


def test_json_has_escapes_that_yaml_lacks_and_errors_with_lines() -> None:
    read_back = hot.parse('{"heat_template_version": "2018-08-31", "description": "\\ud83d\\ude00\\/"}')
    assert read_back.description == "😀/"
    with pytest.raises(Invalid, match=r'duplicate key "resources" \(line 3\)'):
        hot.parse('{"heat_template_version": "2018-08-31",\n"resources": {},\n"resources": {}}')


@settings(max_examples=100)
@given(plain)
def test_json_text_parses_as_in_json(value: Any) -> None:
    assert read(json.dumps({"a": value}), "Template", MAX_TEMPLATE) == {"a": value}
    assert read({"a": value}, "Template", MAX_TEMPLATE) == {"a": value}


WORDS = [
    "a", "b: ", "- ", "\n", "  ", "[", "]", "{", "}", ",", "&x ", "*x", "<<: ", "? ", ": ", "!!set ", "!", "|\n", ">",
    "'", '"', "\\", "~", "0b", "1_", ".5", "%", "---\n", "...", "#", "\0", "é", "get_param", "resources:\n", "\t",
]  # fmt: skip
PROPERTIES = HEAD + "resources:\n  a:\n    type: x\n    properties: "
yamlish = st.lists(st.sampled_from(WORDS), max_size=30).map("".join)


@settings(max_examples=examples(100))
@given(st.text(max_size=40) | yamlish, st.sampled_from(["", HEAD, PROPERTIES]))
def test_any_text_is_a_template_or_an_error(text: str, head: str) -> None:
    try:
        template = hot.parse(head + text)
    except StokerError as error:
        assert error.status == 400
        return
    assert hot.parse(json.loads(json.dumps(template.document))) == template


@settings(max_examples=100)
@given(plain, st.sampled_from(["resources", "outputs", "parameters", "parameter_groups", "conditions", "description"]))
def test_any_data_is_a_template_or_an_error(value: Any, section: str) -> None:
    for document in ({section: value}, {section: {"a": value}}, {section: {"a": {"type": "x", "properties": value}}}):
        try:
            template = hot.parse({"heat_template_version": "2018-08-31", **document})
        except StokerError as error:
            assert error.status == 400
        else:
            assert json.loads(json.dumps(template.document)) == template.document


PLACES = """\
# a comment
a:
  b: 1
  c:
    - x
    - d: &anchor
        e: 2

      f: 3
g: *anchor
"h": {i: [1,
  2]}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["a"], 2),
        (["a", "b"], 3),
        (["a", "c", 0], 5),
        (["a", "c", 1], 6),
        (["a", "c", 1, "d", "e"], 7),
        (["a", "c", 1, "f"], 9),
        (["h", "i", 1], 12),
        (["a", "c", 1, "missing", "deeper"], 6),
        (["a", "c", 9], 4),
        (["a", "c", "word"], 4),
        (["a", "b", "below a scalar"], 3),
        (["g", "e"], 10),
    ],
)
def test_the_line_of_the_deepest_existing_part_is_found(path: Sequence[str | int], line: int) -> None:
    assert yaml_text.lines(PLACES, [tuple(path)]) == {tuple(path): line}


@pytest.mark.parametrize(
    ("source", "path"), [(PLACES, ["missing"]), (PLACES, []), ("", ["a"]), ("]", ["a"]), ("\ud800", ["a"])]
)
def test_text_without_lines_has_no_line(source: str, path: list[str]) -> None:
    assert yaml_text.lines(source, [tuple(path)]) == {}


def test_lines_are_found_in_json_and_before_an_unreadable_part() -> None:
    assert yaml_text.lines('{"a": {},\n "b": {"c":\n 1}}', [("b", "c")]) == {("b", "c"): 2}
    deep = "b: 1\na: " + "[" * 900 + "]" * 900 + "\nc: 1"
    assert yaml_text.lines(deep, [("b",), ("a", 0), ("c",)]) == {("b",): 1, ("a", 0): 2}
