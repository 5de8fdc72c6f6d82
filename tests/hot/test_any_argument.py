"""Whatever a function is given, it answers with a value that can be stored, or says what is wrong, at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot.functions import all_functions, functions_of
from stoker.hot.scope import MAX_WEIGHT
from stoker.hot.syntaxes import VERSIONS
from stoker.hot.text import check_plain
from stoker.model.errors import Invalid
from stoker.store import rows
from support.scope import World
from support.search import at_once, examples

pytestmark = pytest.mark.slow

NEWEST = max(VERSIONS)

#: Words that the functions know, so that what is made up comes past the first look at its shape.
WORDS = [
    "", "a", "b", "aa", "p", "r", "keys", "values", "template", "params", "for_each", "permutations", "expression",
    "data", "scheme", "host", "port", "query", "path", "username", "password", "fragment", "md5", "sha256", "metadata",
    "true", "$.data", "%a%", "0", "1", "-1", "80", "1.5", "nan", "inf", "²", "1" * 5000, "ä€😀", "x" * 1000,
]  # fmt: skip
texts = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
numbers = (
    st.integers(-3, 90000)
    | st.sampled_from([2**63, 2**64, -(2**1000), 10**300, 1.0, 0.0, -0.0, 1.7, 1e308, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
#: What each function should be given, each part of it anything.
SHAPES = {
    "contains": st.tuples(values, values),
    "digest": st.tuples(st.sampled_from(["md5", "sha256", "x"]) | values, values),
    "filter": st.tuples(values, values),
    "get_attr": st.tuples(st.just("r") | values, st.just("a") | values, values),
    "get_param": st.tuples(st.just("p") | values, values, values),
    "list_concat": st.lists(st.lists(values, max_size=3) | values, max_size=3),
    "list_concat_unique": st.lists(st.lists(values, max_size=3) | values, max_size=3),
    "list_join": st.tuples(texts | values, st.lists(values, max_size=3) | values, values),
    "make_url": st.fixed_dictionaries(
        {},
        optional={name: values for name in
                  ("scheme", "username", "password", "host", "port", "path", "query", "fragment")},
    ),
    "map_merge": st.lists(st.dictionaries(texts, values, max_size=3) | values, max_size=3),
    "map_replace": st.tuples(
        st.dictionaries(texts, values, max_size=3) | values,
        st.fixed_dictionaries({}, optional={"keys": values, "values": values}) | values,
    ),
    "repeat": st.fixed_dictionaries(
        {"template": values, "for_each": st.dictionaries(texts, st.lists(values, max_size=3) | values, max_size=3)},
        optional={"permutations": values},
    ),
    "str_split": st.tuples(texts | values, texts | values, values),
    "yaql": st.fixed_dictionaries({"expression": st.sampled_from(["$", "$.data", "$.data[0]", "$.data.len()"]) | values,
                                   "data": values}),
}  # fmt: skip
_FILLING = st.fixed_dictionaries({"template": texts | values, "params": st.dictionaries(texts, values, max_size=3)})
SHAPES |= dict.fromkeys(("str_replace", "str_replace_strict", "str_replace_vstrict"), _FILLING)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _outcome(name: str, argument: Any, scope: Any) -> Any:
    try:
        return ("value", hot.evaluate({name: argument}, scope))
    except Invalid as error:
        return ("refused", error.message)


def _scope(version: str, said: Any) -> Any:
    return World(
        version,
        parameters={"p": said},
        ids={"r": "id", "a": "id", "p": "id"},
        attributes={"r": {"a": said}},
        files={"a": "text", "": ""},
        facades=dict.fromkeys(("metadata", "deletion_policy", "update_policy"), said),
    )


class _Any(dict[str, Any]):
    """Has everything: names that do not exist are found before any function runs."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value

    def __missing__(self, _key: str) -> Any:
        return self._value


def _check(name: str, argument: Any, said: Any) -> None:
    outcomes = {}
    for version in VERSIONS:
        if name not in functions_of(version):
            continue
        scope = _scope(version, said)
        scope.ids = _Any("id")
        scope.attributes = _Any({"a": said})
        kind, found = outcomes[version] = _outcome(name, argument, scope)
        if kind == "refused":
            assert found and len(found) < 3000
            continue
        assert hot.weigh(found)[0] <= MAX_WEIGHT
        check_plain(found)
        assert rows.load(rows.dump(found)) == found
    values_given = [found for kind, found in outcomes.values() if kind == "value"]
    assert all(repr(found) == repr(values_given[0]) for found in values_given)
    # What a version takes, all later ones take too.
    kinds = [kind for _, (kind, _) in sorted(outcomes.items())]
    if name not in ("list_join", "get_attr"):
        assert kinds == sorted(kinds), outcomes


@pytest.mark.parametrize("name", sorted(all_functions()))
@settings(max_examples=examples(40))
@given(data=st.data())
def test_any_argument_is_evaluated_or_refused(name: str, data: st.DataObject) -> None:
    argument = _plain(data.draw(SHAPES.get(name, values) | values, label="argument"))
    said = _plain(data.draw(values, label="parameter and attribute"))
    with at_once():
        _check(name, argument, said)
        _parsed(name, argument)


def _parsed(name: str, argument: Any) -> None:
    for version in VERSIONS:
        template = {"heat_template_version": version, "outputs": {"o": {"value": {name: argument}}}}
        try:
            hot.parse(template, {})
        except Invalid as error:
            assert error.message
            assert len(error.message) < 12_000  # places may be of names as long as they like
