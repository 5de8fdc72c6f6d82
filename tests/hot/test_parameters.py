"""Schemas, values and their types, what wins, what is shown, what may change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.hot.constraints import CHECKS
from stoker.model.errors import (
    ImmutableParameterModified,
    InvalidSchemaError,
    StackValidationFailed,
    StokerError,
    UnknownUserParameter,
    UserParameterMissing,
)

PSEUDO = {"OS::stack_id": "id", "OS::stack_name": "name", "OS::project_id": "project"}


def bind(
    schemas: dict[str, Any], supplied: dict[str, Any] | None = None, version: str = "2018-08-31", **environment: Any
) -> hot.Parameters:
    template = hot.parse({"heat_template_version": version, "parameters": schemas})
    return hot.bind(template, hot.Environment.parse(environment), supplied=supplied, pseudo=PSEUDO)


def bound(given: Any, type_name: str, *constraints: dict[str, Any]) -> Any:
    return bind({"p": {"type": type_name, "constraints": list(constraints)}}, {"p": given})["p"]


@pytest.mark.parametrize(
    ("type_name", "given", "value", "shown"),
    [
        ("string", "a", "a", "a"),
        ("string", 5, "5", "5"),
        ("string", True, "True", "True"),
        ("string", "", "", ""),
        ("number", 5, 5, "5"),
        ("number", "5", 5, "5"),
        ("number", "-3.5", -3.5, "-3.5"),
        ("number", "1e3", 1000.0, "1000.0"),
        ("boolean", True, True, "True"),
        ("boolean", "Yes", True, "True"),
        ("boolean", "1", True, "True"),
        ("boolean", 0, False, "False"),
        ("boolean", "off", False, "False"),
        ("comma_delimited_list", "a,b", ["a", "b"], "a,b"),
        ("comma_delimited_list", "", [], ""),
        ("comma_delimited_list", "a, b", ["a", " b"], "a, b"),
        ("comma_delimited_list", ["a", 1, None, {"k": 1}], ["a", "1", "", '{"k": 1}'], 'a,1,,{"k": 1}'),
        ("json", {"a": [1]}, {"a": [1]}, '{"a": [1]}'),
        ("json", '{"a": [1]}', {"a": [1]}, '{"a": [1]}'),
        ("json", [1], [1], "[1]"),
        ("json", "", "", '""'),
    ],
)
def test_values_are_converted_to_their_type(type_name: str, given: Any, value: Any, shown: str) -> None:
    parameters = bind({"p": {"type": type_name}}, {"p": given})
    assert parameters["p"] == value
    assert type(parameters["p"]) is type(value)
    assert parameters.for_display()["p"] == shown


@pytest.mark.parametrize(
    ("type_name", "given", "words"),
    [
        ("string", ["a"], "text is needed, not a list"),
        ("string", {}, "text is needed, not a map"),
        ("string", "a\0", "NUL"),
        ("number", "three", '"three" is not a number'),
        ("number", "", "is not a number"),
        ("number", "٣", "is not a number"),
        ("number", "1_0", "is not a number"),
        ("number", "nan", "is not a number"),
        ("number", "1e400", "is too large"),
        ("number", "9" * 5000, "is not a number"),
        ("number", "x" * 100_000, "is not a number"),
        ("number", True, "a boolean is not a number"),
        ("number", [1], "a list is not a number"),
        ("boolean", "perhaps", "acceptable values are 1, t, true"),
        ("boolean", 2, "acceptable values"),
        ("boolean", [], "acceptable values"),
        ("comma_delimited_list", {}, "a list or text with commas"),
        ("json", "{", "Value must be valid JSON"),
        ("json", "NaN", "Value must be valid JSON"),
        ("json", '{"a": 1, "a": 2}', "given twice"),
        ("json", "[" * 100_000, "nested too deeply"),
        ("json", {"a": float("inf")}, "infinity"),
        ("json", {1: 2}, "keys must be text"),
    ],
)
def test_values_of_other_types_are_refused(type_name: str, given: Any, words: str) -> None:
    with pytest.raises(StackValidationFailed, match=r"^Parameter 'p' is invalid: ") as caught:
        bound(given, type_name)
    assert words in caught.value.message
    assert len(caught.value.message) < 1200


def test_the_precedence_of_values() -> None:
    schemas = {name: {"type": "string", "default": "template"} for name in "abcde"}
    parameters = bind(
        schemas,
        {"a": "request", "e": None},
        parameters={"a": "environment", "b": "environment", "d": None},
        parameter_defaults={"a": "site", "b": "site", "c": "site", "elsewhere": "site"},
    )
    assert {name: parameters[name] for name in schemas} == {
        "a": "request",
        "b": "environment",
        "c": "site",
        "d": "template",
        "e": "template",
    }


def test_a_parameter_without_a_value_is_an_error() -> None:
    with pytest.raises(UserParameterMissing, match=r"^The Parameter \(p\) was not provided\.$"):
        bind({"p": {"type": "string", "default": None}})


def test_a_parameter_that_the_template_lacks_is_an_error() -> None:
    for supplied, environment in (({"x": 1}, {}), ({}, {"parameters": {"x": 1}}), ({"OS::stack_name": "x"}, {})):
        with pytest.raises(UnknownUserParameter, match="was not defined in template"):
            bind({}, supplied, **environment)


def test_pseudo_parameters_have_values() -> None:
    parameters = bind({})
    assert parameters.for_display() == PSEUDO
    assert parameters["OS::stack_name"] == "name"
    with pytest.raises(UserParameterMissing, match="OS::region"):
        parameters["OS::region"]


def test_hidden_values_are_never_shown() -> None:
    schemas = {"p": {"type": "string", "hidden": True, "constraints": [{"length": {"max": 3}}]}}
    parameters = bind(schemas, {"p": "abc"})
    assert (parameters["p"], parameters.for_display()["p"]) == ("abc", "******")
    for schema, secret in ((schemas["p"], "secret"), ({"type": "number", "hidden": "yes"}, "secret")):
        with pytest.raises(StackValidationFailed) as caught:
            bind({"p": schema}, {"p": secret})
        assert "secret" not in caught.value.message


def test_immutable_values_cannot_change() -> None:
    schemas = {"p": {"type": "string", "immutable": True}, "q": {"type": "string", "default": "x"}}
    old = bind(schemas, {"p": "a"})
    old.check_update(bind(schemas, {"p": "a", "q": "changed"}))
    old.check_update(bind(schemas | {"new": {"type": "string", "immutable": True}}, {"p": "a", "new": "b"}))
    with pytest.raises(ImmutableParameterModified, match="may not be updated: p"):
        old.check_update(bind(schemas, {"p": "b"}))


@settings(max_examples=100)
@given(
    st.dictionaries(st.sampled_from("abc"), st.text("x,1", max_size=5)),
    st.sampled_from(["string", "comma_delimited_list"]),
    st.booleans(),
    st.booleans(),
)
def test_parameters_survive_the_database(values: dict[str, str], kind: str, hidden: bool, immutable: bool) -> None:
    schemas = {name: {"type": kind, "hidden": hidden, "immutable": immutable} for name in values}
    parameters = bind(schemas, values)
    assert hot.Parameters.from_json(json.loads(json.dumps(parameters.to_json()))) == parameters


@pytest.mark.parametrize(
    ("type_name", "constraint", "good", "bad", "words"),
    [
        ("string", {"length": {"min": 2, "max": 3}}, ["ab", "abc"], ["a", "abcd"], "is out of range (min: 2, max: 3)"),
        ("comma_delimited_list", {"length": {"max": 1}}, ["a", ""], ["a,b"], "length (2) is out of range"),
        ("json", {"length": {"min": 1}}, [{"a": 1}, [1]], [{}, []], "length (0) is out of range"),
        ("number", {"range": {"min": 1}}, [1, "2"], [0, "0.5"], "is out of range (min: 1, max: None)"),
        ("number", {"range": {"max": "1.5"}}, [1.5], [1.6], "is out of range"),
        (
            "number",
            {"modulo": {"step": 3, "offset": 1}},
            [1, 4, -2],
            [3, 0],
            "is not a multiple of 3 with an offset of 1",
        ),
        ("number", {"modulo": {"step": 2}}, [0, 2], [1, 1.5], "is not a multiple of 2"),
        ("string", {"allowed_values": ["a", 1]}, ["a", 1, "1"], ["b"], "b is not an allowed value [a, 1]"),
        ("number", {"allowed_values": [1, "2"]}, ["1", 2], [3], "3 is not an allowed value [1, 2]"),
        ("boolean", {"allowed_values": ["yes"]}, [True], ["no"], "False is not an allowed value"),
        ("comma_delimited_list", {"allowed_values": ["a", "b"]}, ["a,b", ""], ["a,c"], "c is not an allowed value"),
        ("string", {"allowed_pattern": "[a-z]+"}, ["abc"], ["abc1", "", "1abc"], 'does not match pattern "[a-z]+"'),
        ("string", {"allowed_pattern": "a|ab"}, ["a"], ["ab", "abc"], "does not match"),
        ("string", {"custom_constraint": "ip_addr"}, ["1.2.3.4", "::1"], ["1.2.3"], "does not validate ip_addr"),
        ("comma_delimited_list", {"custom_constraint": "ip_addr"}, ["1.1.1.1,::1", ""], ["1.1.1.1,x"], '"x" does not'),
        ("string", {"custom_constraint": "nova.flavor"}, ["anything"], [], ""),
    ],
)
def test_constraints_are_checked(
    type_name: str, constraint: dict[str, Any], good: list[Any], bad: list[Any], words: str
) -> None:
    for value in good:
        bound(value, type_name, constraint)
    for value in bad:
        with pytest.raises(StackValidationFailed) as caught:
            bound(value, type_name, constraint)
        assert words in caught.value.message


def test_all_constraints_must_hold_and_the_error_is_the_description_of_the_failing_one() -> None:
    rules = ({"length": {"min": 2}, "description": "Too short!"}, {"allowed_pattern": "a*"})
    assert bound("aa", "string", *rules) == "aa"
    with pytest.raises(StackValidationFailed, match="does not match"):
        bound("bb", "string", *rules)
    with pytest.raises(StackValidationFailed, match=r"^Parameter 'p' is invalid: Too short!$"):
        bound("a", "string", *rules)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ip_addr", ["10.0.0.1", "fe80::1"], ["10.0.0.256", "", "10.0.0.1/8"]),
        (
            "net_cidr",
            ["10.0.0.0/8", "10.0.0.1/8", "fe80::/64"],
            ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "/8"],
        ),
        (
            "mac_addr",
            ["00:1a:2B:3c:4d:5e", "00-1a-2b-3c-4d-5e"],
            ["00:1a:2b:3c:4d", "00:1a-2b:3c:4d:5e", "g0:1a:2b:3c:4d:5e"],
        ),
        (
            "dns_name",
            ["a", "example.com", "example.com.", "x-1.y"],
            ["", "-a.b", "a..b", "a" * 64, "a.1", "a_b", "a." * 130],
        ),
        ("iso_8601", ["2018-08-31", "2018-08-31T12:00:00Z", "20180831T120000"], ["yesterday", "2018-13-01", ""]),
        ("json_string", ["{}", "[1]", '"a"'], ["{", "", "[" * 100_000]),
        (
            "cron_expression",
            ["", "* * * * *", "*/5 0-23/2 1,15 jan-mar mon", "0 0 31 12 7", "@daily"],
            ["* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "x * * * *", "* jan * * *", f"{'1,' * 200}1 * * * *"],
        ),
    ],
)
def test_custom_constraints_are_checked(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not CHECKS[name](text)] == []
    assert [text for text in bad if CHECKS[name](text)] == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "a map is needed"),
        ({}, "Missing parameter type for parameter: p"),
        ({"type": "text"}, "parameters.p.type: Invalid type (text)"),
        ({"type": ["string"]}, "Invalid type"),
        ({"type": "string", "defualt": 1}, "Invalid key 'defualt' for parameter (p)"),
        ({"type": "string", "hidden": "maybe"}, "parameters.p.hidden: "),
        ({"type": "string", "label": []}, "parameters.p.label: text is needed"),
        ({"type": "string", "tags": "x"}, "parameters.p.tags: a list is needed"),
        ({"type": "number", "default": "x"}, 'parameters.p.default: Invalid default ("x" is not a number)'),
        (
            {"type": "number", "default": 5, "constraints": [{"range": {"max": 4}}]},
            "Invalid default (5 is out of range",
        ),
        ({"type": "string", "constraints": {}}, "parameters.p.constraints: a list is needed"),
        ({"type": "string", "constraints": ["x"]}, "parameters.p.constraints[0]: a map is needed"),
        ({"type": "string", "constraints": [{}]}, "exactly one constraint"),
        ({"type": "string", "constraints": [{"description": "x"}]}, "exactly one constraint"),
        ({"type": "string", "constraints": [{"length": {"min": 1}, "allowed_values": []}]}, "exactly one constraint"),
        ({"type": "string", "constraints": [{"size": 1}]}, "Invalid key 'size'"),
        ({"type": "string", "constraints": [{"range": {"min": 1}}]}, "range constraint invalid for string"),
        ({"type": "number", "constraints": [{"length": {"min": 1}}]}, "length constraint invalid for number"),
        ({"type": "number", "constraints": [{"range": {}}]}, "min or max is needed"),
        ({"type": "number", "constraints": [{"range": {"min": None, "max": None}}]}, "min or max is needed"),
        ({"type": "number", "constraints": [{"range": {"low": 1}}]}, "Invalid key 'low'"),
        ({"type": "number", "constraints": [{"range": {"min": "x"}}]}, "range.min: "),
        ({"type": "number", "constraints": [{"modulo": {"step": 0}}]}, "step must be"),
        ({"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 2}}]}, "offset must be smaller"),
        ({"type": "number", "constraints": [{"allowed_values": ["x"]}]}, '"x" is not a number'),
        ({"type": "string", "constraints": [{"allowed_values": "x"}]}, "a list is needed"),
        ({"type": "string", "constraints": [{"allowed_pattern": "("}]}, "is no regular expression"),
        ({"type": "string", "constraints": [{"allowed_pattern": "(" * 5000}]}, "more than 4096 characters"),
        ({"type": "string", "constraints": [{"allowed_pattern": "a{99999999999}"}]}, "is no regular expression"),
        ({"type": "string", "constraints": [{"allowed_pattern": 5}]}, "a regular expression is needed"),
        ({"type": "string", "constraints": [{"custom_constraint": 5}]}, "a name is needed"),
    ],
)
def test_invalid_schemas_are_refused(schema: Any, words: str) -> None:
    with pytest.raises(StokerError) as caught:
        bind({"p": schema})
    assert words in caught.value.message
    assert caught.value.status == 400


def test_the_error_of_a_schema_has_its_line() -> None:
    parameter = "parameters:\n  p:\n    type: number\n    constraints:\n      - range: {min: x}"
    with pytest.raises(InvalidSchemaError, match=r"range\.min: .* \(line 6\)"):
        hot.parse(f"heat_template_version: 2018-08-31\n{parameter}")


@pytest.mark.parametrize("name", ["OS::stack_id", "OS::project_id", "", "n" * 256])
def test_reserved_parameter_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidSchemaError, match="cannot have this name"):
        bind({name: {"type": "string"}})


def test_a_default_may_violate_a_custom_constraint() -> None:
    assert (
        bind({"p": {"type": "string", "default": "?", "constraints": [{"custom_constraint": "nova.flavor"}]}})["p"]
        == "?"
    )
    schema = {"type": "string", "default": "?", "constraints": [{"custom_constraint": "ip_addr"}]}
    assert (
        hot.parse({"heat_template_version": "2018-08-31", "parameters": {"p": schema}}).parameters["p"].default == "?"
    )


def test_keywords_need_their_version() -> None:
    tags = {"type": "string", "default": "", "tags": ["a", 1]}
    assert bind({"p": tags}, version="2018-03-02")
    with pytest.raises(InvalidSchemaError, match="Invalid key 'tags'"):
        bind({"p": tags}, version="2017-09-01")
    modulo = {"type": "number", "default": 2, "constraints": [{"modulo": {"step": 2}}]}
    assert bind({"p": modulo}, version="2017-02-24")
    with pytest.raises(InvalidSchemaError, match="Invalid key 'modulo'"):
        bind({"p": modulo}, version="2016-10-14")
