"""Input values of Stoker's own requests: names, types and required values."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stoker.deployments.schema import check_values, refuse_missing
from stoker.model.config import Content
from stoker.model.errors import Invalid

INPUTS = (
    {"name": "items", "type": "Number", "default": 10},
    {"name": "text", "type": "String"},
    {"name": "list", "type": "CommaDelimitedList"},
    {"name": "json", "type": "Json"},
    {"name": "flag", "type": "Boolean"},
    {"name": "pin", "type": "Number", "secret": True},
)
CONTENT = Content(name="c", group="script", config="true", inputs=INPUTS, options={}, facts={})
PUPPET = replace(CONTENT, group="puppet")
STRUCTURED = replace(
    PUPPET, inputs=(), config={"port": [{"get_input": "port"}, {"other": {"get_it": "x"}}]}, input_key="get_input"
)
PARTS = [{"actions": ["CREATE"], "tool": "puppet"}, {"actions": ["BACKUP"], "tool": "script"}]
COMPONENT = replace(CONTENT, group="component", config={"configs": PARTS})


@pytest.mark.parametrize(
    ("name", "value", "converted"),
    [
        ("items", "4", 4),
        ("text", "4", "4"),
        ("text", 4, 4),
        ("text", {"a": [1]}, {"a": [1]}),
        ("list", "a,b", ["a", "b"]),
        ("json", '{"a": 1}', {"a": 1}),
        ("flag", "yes", True),
    ],
)
def test_values_are_converted_to_the_declared_type(name, value, converted):
    result = check_values(CONTENT, "RUN", {name: value})
    assert result == {name: converted}
    assert type(result[name]) is type(converted)


@pytest.mark.parametrize(
    ("content", "values", "words"),
    [
        (CONTENT, {"itemz": 4}, r'^The config declares no input "itemz"; did you mean "items"\? --allow-undeclared'),
        (CONTENT, {"q": 1, "r": 2}, 'declares no input "q", "r"; it has "flag", "items"'),
        (replace(CONTENT, inputs=()), {"q": 1}, "it has no inputs"),
        (CONTENT, {"items": "abc"}, 'The input "items" is a Number: "abc" is not a number'),
        (CONTENT, {"json": "{"}, 'The input "json" is a Json: Value must be valid JSON'),
        (CONTENT, {"list": {"a": 1}}, 'The input "list" is a CommaDelimitedList'),
        (CONTENT, {"flag": "maybe"}, 'The input "flag" is a Boolean: "maybe" is not a boolean'),
        (CONTENT, {"items": "x", "flag": "y", "json": "["}, '"items" is a Number.*; .*"json" is a Json'),
        (CONTENT, {"pin": "hunter2"}, '^The value of the secret input "pin" is no Number$'),
        (CONTENT, {"bad name": 1}, '"bad name" cannot be an environment variable'),
        (CONTENT, {"": 1}, '"" cannot be an environment variable'),
        (CONTENT, {"1st": 1}, '"1st" cannot be an environment variable'),
        (CONTENT, {"größe": 1}, '"größe" cannot be an environment variable'),
        (COMPONENT, {"bad-name": 1}, '"bad-name" cannot be an environment variable'),
        (CONTENT, {"deploy_action": "x"}, "names must not begin with deploy_"),
        (STRUCTURED, {"x": 1}, 'no input "x"'),
    ],
)
def test_wrong_names_and_values_are_refused(content, values, words):
    with pytest.raises(Invalid, match=words) as refusal:
        check_values(content, "BACKUP", values)
    assert "hunter2" not in refusal.value.message


@pytest.mark.parametrize(
    ("content", "values", "more"),
    [
        (CONTENT, {"any_name": 1}, {"allow_undeclared": True}),
        (CONTENT, {"known": 1}, {"in_use": {"known"}}),
        (STRUCTURED, {"port": 80}, {}),
        (replace(PUPPET, inputs=({"name": "a-b"},)), {"a-b": 1}, {}),
        (replace(COMPONENT, inputs=({"name": "a-b"},)), {"a-b": 1}, {"action": "CREATE"}),
    ],
)
def test_these_names_are_accepted_and_names_of_no_variable_still_refused(content, values, more):
    more = {"action": "BACKUP", **more}
    assert check_values(content, more.pop("action"), values, **more) == values
    with pytest.raises(Invalid, match="environment variable"):
        check_values(CONTENT, "RUN", {"bad name": 1}, **more)


def test_every_run_needs_a_value_for_inputs_without_a_default():
    present = {"text", "list", "json", "flag", "pin"}
    refuse_missing(CONTENT, [present, present])
    with pytest.raises(Invalid, match='needs a value for "text", "pin"'):
        refuse_missing(CONTENT, [present, present - {"text", "pin"}])
