"""Values held against schemas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.hot import UNKNOWN
from stoker.resources.properties import Property, PropertyError, check, fit


@pytest.mark.parametrize(
    ("kind", "given", "fitting"),
    [
        ("string", 5, "5"),
        ("string", True, "True"),
        ("integer", "7", 7),
        ("integer", 7.0, 7),
        ("number", "1.5", 1.5),
        ("number", "-3", -3),
        ("boolean", "True", True),
        ("boolean", "false", False),
        ("boolean", False, False),
        ("map", '{"a": 1}', {"a": 1}),
        ("list", (1, 2), [1, 2]),
        ("any", {"a": [1]}, {"a": [1]}),
    ],
)
def test_values_are_converted(kind, given, fitting):
    assert fit(Property(kind=kind), given, ()) == fitting


@pytest.mark.parametrize(
    ("wanted", "given", "problem"),
    [
        (Property(kind="string"), [1], "Value must be a string; got a list"),
        (Property(kind="integer"), "1.5", "Value '1.5' is not an integer"),
        (Property(kind="integer"), True, "Value True is not an integer"),
        (Property(kind="number"), "x", "Value 'x' is not a number"),
        (Property(kind="boolean"), "maybe", '"maybe" is not a valid boolean'),
        (Property(kind="boolean"), "yes", '"yes" is not a valid boolean'),
        (Property(kind="boolean"), 1, '"1" is not a valid boolean'),
        (Property(kind="list"), "a,b", "Value must be a list, not text"),
        (Property(kind="map"), [1], "Value must be a map, not a list"),
        (Property(kind="map"), "no json", "Value must be a map, not a text"),
        (Property(kind="string", allowed=("A", "B")), "C", r'"C" is not an allowed value \["A", "B"\]'),
        (Property(kind="number", minimum=1), 0, r"0 is out of range \(min: 1, max: None\)"),
    ],
)
def test_invalid_values_are_named(wanted, given, problem):
    with pytest.raises(PropertyError, match=problem):
        fit(wanted, given, ())


SCHEMA = {
    "need": Property(kind="string", required=True),
    "many": Property(kind="list", each=Property(kind="map", schema={"n": Property(kind="integer", required=True)})),
    "some": Property(kind="number", default=3),
}


def test_missing_unknown_and_inner_properties_are_named():
    with pytest.raises(PropertyError, match="Property need not assigned"):
        check(SCHEMA, {})
    with pytest.raises(PropertyError, match="Unknown Property color; known are many, need, some"):
        check(SCHEMA, {"color": 1})
    with pytest.raises(PropertyError, match='Unknown Property nead; did you mean "need"'):
        check(SCHEMA, {"nead": 1})

    with pytest.raises(PropertyError) as caught:
        check(SCHEMA, {"need": "x", "many": [{"n": 1}, {"n": "x"}]}, ("resources", "r", "properties"))
    assert caught.value.path == ("resources", "r", "properties", "many", 1, "n")


def test_all_invalid_values_are_reported():
    errors = []
    found = check(SCHEMA, {"nead": "x", "many": [{"n": "x"}], "some": "x"}, errors=errors)
    assert found == {"need": UNKNOWN, "many": UNKNOWN, "some": UNKNOWN}
    assert [each.path for each in errors] == [("nead",), ("need",), ("many", 0, "n"), ("some",)]
    # Heat names the place around what is missing or unknown.
    assert [each.shown for each in errors] == [(), (), ("many", 0, "n"), ("some",)]


def test_defaults_apply_and_unknown_values_are_accepted():
    assert check(SCHEMA, {"need": UNKNOWN}) == {"need": UNKNOWN, "many": None, "some": 3}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(anything, st.sampled_from(["string", "integer", "number", "boolean", "list", "map", "any"]))
def test_any_value_is_refused_or_converts_to_a_valid_one(value, kind):
    wanted = Property(kind=kind)
    try:
        once = fit(wanted, value, ())
    except PropertyError:
        return
    again = fit(wanted, once, ())
    assert again == once or once != once  # NaN is not itself
