"""What of a template counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker import hot
from stoker.hot import UNKNOWN, Environment
from stoker.model.errors import (
    CircularDependencyException,
    InvalidTemplateReference,
    InvalidTemplateSection,
    InvalidTemplateVersion,
    StackValidationFailed,
    StokerError,
)

PARAMETERS = {
    "kind": {"type": "string", "default": "prod"},
    "flag": {"type": "boolean", "default": False},
    "list": {"type": "comma_delimited_list", "default": "a,b"},
}


def decided(version: str = "2021-04-16", given: dict[str, Any] | None = None, **sections: Any) -> hot.Template:
    template = hot.parse({"heat_template_version": version, "parameters": PARAMETERS, **sections})
    values = hot.bind(template, Environment.parse(None), supplied=given or {}, pseudo={})
    return hot.decide(template, values)


def value(said: Any, conditions: dict[str, Any] | None = None, **more: Any) -> Any:
    return decided(outputs={"o": {"value": said}}, conditions=conditions or {}, **more).outputs["o"].value


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (True, True),
        ({"equals": [{"get_param": "kind"}, "prod"]}, True),
        ({"equals": [1, "1"]}, False),
        ({"equals": [{"get_param": ["list", 0]}, "a"]}, True),
        ({"not": {"get_param": "flag"}}, True),
        ({"not": "yes"}, False),
        ({"and": ["yes", {"get_param": "flag"}]}, False),
        ({"and": ["yes", True, {"not": "no"}]}, True),
        ({"or": ["no", {"get_param": "flag"}]}, False),
        ({"or": ["no", "yes"]}, True),
        ({"contains": ["b", {"get_param": "list"}]}, True),
        ({"yaql": {"expression": "$.data = 'prod'", "data": {"get_param": "kind"}}}, True),
        ({"equals": [{"not": "yes"}, False]}, True),
        ({"equals": [{"if": ["yes", "prod", "test"]}, {"get_param": "kind"}]}, True),
        ({"equals": [["a", {"if": ["no", "b"]}], ["a"]]}, True),
    ],
)
def test_conditions_are_true_or_false(said: Any, holds: bool) -> None:
    known = {"yes": True, "no": False, "asked": said}
    assert value({"if": ["asked", "then", "else"]}, known) == ("then" if holds else "else")
    assert value({"if": [said, "then", "else"]}, known) == ("then" if holds else "else")


def test_only_the_chosen_branch_is_evaluated() -> None:
    made = decided(
        resources={
            "a": {"type": "x", "properties": {"p": {"if": [False, {"get_resource": "nobody"}, {"get_resource": "b"}]}}},
            "b": {"type": "x", "properties": {"p": {"if": [True, 1, {"get_attr": ["a", "x"]}]}}},
        }
    )
    assert made.requirements == {"a": {"b"}, "b": frozenset()}
    assert made.resources["b"].properties == {"p": 1}

    assert value({"if": [True, [{"if": [False, 1, {"x": {"if": [True, 2, 3]}}]}], 4]}) == [{"x": 2}]


def test_a_false_if_without_a_third_argument_removes_the_value() -> None:
    said = {"keep": 1, "drop": {"if": [False, 2]}, "list": [{"if": [False, 1]}, 2, {"if": [True, 3]}]}
    assert value(said) == {"keep": 1, "list": [2, 3]}
    with pytest.raises(StackValidationFailed, match="a condition and two values"):
        decided("2018-08-31", resources={"a": {"type": "x", "properties": {"p": {"if": [False, 2]}}}})


@pytest.mark.parametrize("said", [{"if": [False, {"p": 1}]}, {"if": [True, None, {"p": 1}]}])
def test_a_condition_may_remove_a_whole_section_of_a_resource(said: Any) -> None:
    made = decided(resources={"a": {"type": "x", "properties": said, "metadata": said}})
    assert (made.resources["a"].properties, made.resources["a"].metadata) == ({}, {})


def test_the_value_of_a_condition_is_computed_only_if_something_uses_the_condition() -> None:
    """Such a condition is written for the branch in which the parameter is a boolean."""
    conditions = {
        "no_boolean": {"get_param": "kind"},
        "used": {"equals": [{"get_param": "kind"}, "prod"]},
    }
    assert value({"if": ["used", 1, {"if": ["no_boolean", 2, 3]}]}, conditions) == 1


def test_settings_of_a_resource_may_be_conditional() -> None:
    settings = {"deletion_policy": {"if": ["prod", "retain", "delete"]}, "external_id": {"if": ["prod", "id", ""]}}
    made = decided(
        conditions={"prod": {"equals": [{"get_param": "kind"}, "prod"]}}, resources={"a": {"type": "x", **settings}}
    ).resources["a"]
    assert (made.deletion_policy, made.external_id) == ("Retain", "id")


def test_a_false_condition_removes_resources_and_outputs() -> None:
    made = decided(
        conditions={"prod": {"equals": [{"get_param": "kind"}, "prod"]}},
        given={"kind": "test"},
        resources={
            "a": {"type": "x", "condition": "prod"},
            "b": {"type": "x", "depends_on": ["a", "c"]},
            "c": {"type": "x", "condition": {"not": "prod"}},
        },
        outputs={"of_a": {"condition": "prod", "value": {"get_resource": "a"}}, "of_c": {"value": "c"}},
    )
    assert set(made.resources) == {"b", "c"}
    assert made.requirements["b"] == {"c"}
    assert made.outputs["of_a"].value is None


def test_a_removed_resource_cannot_be_referenced() -> None:
    with pytest.raises(InvalidTemplateReference, match=r'"a" .in b.Properties.p. is incorrect'):
        decided(
            resources={
                "a": {"type": "x", "condition": False},
                "b": {"type": "x", "properties": {"p": {"get_resource": "a"}}},
            }
        )


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"conditions": {"a": "b", "b": True}}, "conditions.a: a boolean or a condition function"),
        ({"conditions": {"a": {"not": "b"}, "b": {"not": "a"}}}, "Circular definition for condition: a → b → a"),
        ({"conditions": {"a": {"not": "nobody"}}}, 'Invalid condition "nobody"'),
        ({"conditions": {"a": {"equals": [1]}}}, "needs a list of two values"),
        ({"conditions": {"a": {"and": [True]}}}, "at least two conditions"),
        ({"conditions": {"a": {"get_attr": ["r", "x"]}}}, "is no condition function"),
        ({"conditions": {"a": {"equals": [{"get_resource": "r"}, 1]}}}, "parameters only"),
        (
            {"conditions": {"a": {"get_param": "kind"}}, "resources": {"r": {"type": "x", "condition": "a"}}},
            "must be true or false, not text",
        ),
        ({"resources": {"a": {"type": "x", "deletion_policy": {"if": [True, "Drop", "Retain"]}}}}, "deletion policy"),
        ({"resources": {"a": {"type": "x", "deletion_policy": {"get_attr": ["a", "b"]}}}}, 'not the resource "a"'),
        ({"resources": {"a": {"type": "x", "deletion_policy": {"a": "b"}}}}, "text or a function is needed"),
        ({"resources": {"a": {"type": "x", "external_id": {"get_param": "nobody"}}}}, "nobody"),
        ({"conditions": {"a": {"get_param": "nobody"}}}, "nobody"),
        ({"conditions": {"a": 1}}, "not a number"),
        ({"resources": {"a": {"type": "x", "properties": {"p": {"if": "x"}}}}}, '"if" needs a list'),
        ({"resources": {"a": {"type": "x", "properties": {"p": {"if": ["nobody", 1, 2]}}}}}, "nobody"),
        ({"outputs": {"o": {"value": {"if": [True, [{"if": 5}], 1]}}}}, r'outputs.o.value.if.1..0.: "if" needs a list'),
        ({"conditions": {"a": {"equals": [[{"if": {}}], 1]}}}, r'conditions.a.equals.0..0.: "if" needs a list'),
        ({"resources": {"a": {"type": "x", "condition": "nobody"}}}, "nobody"),
        ({"resources": {"a": {"type": "x", "properties": {"if": [True, [1], {}]}}}}, "must be a map, not a list"),
    ],
)
def test_invalid_conditions_are_named(sections: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StokerError, match=sentence):
        decided(**sections)


def test_a_circular_dependency_may_depend_on_a_condition() -> None:
    with pytest.raises(CircularDependencyException):
        decided(
            resources={
                "a": {"type": "x", "properties": {"p": {"if": [True, {"get_resource": "b"}, 1]}}},
                "b": {"type": "x", "depends_on": "a"},
            }
        )


def test_conditions_need_version_newton() -> None:
    with pytest.raises(InvalidTemplateVersion, match="'if' is not supported in template version 2016-04-08"):
        hot.parse({"heat_template_version": "2016-04-08", "outputs": {"o": {"value": {"if": [True, 1, 2]}}}})
    with pytest.raises(StokerError, match="Invalid keyword"):
        hot.parse({"heat_template_version": "2016-04-08", "resources": {"a": {"type": "x", "condition": True}}})
    with pytest.raises(InvalidTemplateSection, match="section is invalid: conditions"):
        decided("2016-04-08", conditions=None)
    with pytest.raises(InvalidTemplateVersion, match="only from 2017-09-01"):
        decided("2016-10-14", conditions={"a": {"contains": ["a", ["a"]]}})


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"kind": [value]}])
def test_conditions_on_an_unknown_parameter_are_unknown(wrap: Callable[[Any], Any]) -> None:
    template = hot.parse(
        {
            "heat_template_version": "2018-08-31",
            "parameters": PARAMETERS,
            "conditions": {"prod": {"equals": [wrap({"get_param": "kind"}), wrap("prod")]}},
            "resources": {"a": {"type": "x", "condition": "prod", "properties": {"p": {"if": ["prod", 1, 2]}}}},
        }
    )
    made = hot.decide(template, {"kind": UNKNOWN, "flag": False, "list": []})
    assert made.resources["a"].properties == {"p": UNKNOWN}


def test_circular_conditions_are_refused() -> None:
    """Each is decided by deciding the next; a chain of thousands is no mistake worth a crash."""
    chain = {f"c{i}": {"not": f"c{i + 1}"} for i in range(3_000)} | {"c3000": True}
    with pytest.raises(StackValidationFailed, match="too many conditions build on each other"):
        decided(conditions=chain)
    assert decided(conditions=dict(reversed(chain.items())))
