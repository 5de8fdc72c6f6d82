"""Templates in CloudFormation's syntax."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import hot
from stoker.hot import UNKNOWN
from stoker.hot.functions import lookup
from stoker.hot.syntaxes import VERSIONS
from stoker.model.errors import Invalid, InvalidTemplateVersion, StokerError, UserParameterMissing
from stoker_openstack.cloudformation.syntax import REPLACED
from support.scope import World


def cfn(**sections: Any) -> dict[str, Any]:
    return {"HeatTemplateFormatVersion": "2012-12-12", **sections}


def value(said: Any, version: str = "2012-12-12", **sections: Any) -> Any:
    """What a property becomes."""
    if version >= "2013":
        document = {
            "heat_template_version": version,
            "resources": {"a": {"type": "T", "properties": {"p": said}}, "b": {"type": "T"}},
            "parameters": sections.get("parameters", {}),
        }
    else:
        document = cfn(Resources={"a": {"Type": "T", "Properties": {"p": said}}, "b": {"Type": "T"}}, **sections)
    template = hot.parse(document)
    values = {name: schema.default for name, schema in template.parameters.items()} | {"AWS::Region": "r"}
    template = hot.decide(template, values)
    scope = World(template.version, values, {"b": "id of b"}, {"b": {"x": {"y": 1}}})
    return hot.evaluate(template.resources["a"].properties["p"], scope)


def test_a_complete_template_is_translated() -> None:
    template = hot.parse(
        {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Description": "words",
            "Parameters": {
                "Size": {
                    "Type": "String",
                    "Default": "small",
                    "AllowedValues": ["small", "large"],
                    "ConstraintDescription": "small or large",
                },
                "Secret": {"Type": "String", "NoEcho": "true", "MinLength": 1, "MaxLength": "8"},
                "Many": {"Type": "Number", "MinValue": 1, "MaxValue": 3, "Default": 2},
                "List": {"Type": "CommaDelimitedList", "Default": "a,b"},
            },
            "Mappings": {"Sizes": {"small": {"cpus": 1}, "large": {"cpus": 4}}},
            "Conditions": {"Large": {"Fn::Equals": [{"Ref": "Size"}, "large"]}},
            "Resources": {
                "db": {"Type": "T", "DeletionPolicy": "Retain", "Metadata": {"m": 1}},
                "web": {
                    "Type": "T",
                    "DependsOn": ["db"],
                    "Condition": "Large",
                    "Properties": {"cpus": {"Fn::FindInMap": ["Sizes", {"Ref": "Size"}, "cpus"]}},
                    "UpdatePolicy": {"u": 1},
                },
                "app": {"Type": "T", "Properties": {"db": {"Ref": "db"}, "of": {"Fn::GetAtt": ["db", "x"]}}},
            },
            "Outputs": {"url": {"Value": {"Ref": "app"}, "Description": "where"}},
        }
    )
    assert template.version == "2010-09-09"
    assert template.description == "words"
    assert template.parameters["Secret"].hidden
    assert template.resources["web"].depends_on == ("db",)
    assert template.resources["app"].requires == {"db"}
    assert template.resources["db"].deletion_policy == "Retain"
    assert template.outputs["url"].description == "where"
    with pytest.raises(ValueError, match="small or large"):
        template.parameters["Size"].accept("medium")
    with pytest.raises(ValueError, match="does not satisfy"):
        template.parameters["Secret"].accept("")
    assert template.parameters["Many"].accept("3") == 3
    assert "web" not in hot.decide(template, {"Size": "small"}).resources
    assert "web" in hot.decide(template, {"Size": "large"}).resources


NAMES = {"Parameters": {"P": {"Type": "String", "Default": "v"}, "L": {"Type": "CommaDelimitedList", "Default": "a,b"}}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"Ref": "P"}, "v"),
        ({"Ref": "AWS::Region"}, "r"),
        ({"Ref": "b"}, "id of b"),
        ({"Fn::GetAtt": ["b", "x"]}, {"y": 1}),
        ({"Fn::GetAtt": "b.x"}, {"y": 1}),
        ({"Fn::Join": ["-", {"Ref": "L"}]}, "a-b"),
        ({"Fn::Join": ["", ["x", {"Ref": "P"}, None]]}, "xv"),
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Select": ["1", {"Ref": "L"}]}, "b"),
        ({"Fn::Select": [5, ["a"]]}, ""),
        ({"Fn::Select": ["k", {"k": 1}]}, 1),
        ({"Fn::Select": ["k", {}]}, ""),
        ({"Fn::Select": [0, '["x"]']}, "x"),
        ({"Fn::Select": [0, ""]}, ""),
        ({"Fn::Replace": [{"$a": "1", "$ab": 2}, "$ab$a"]}, "21"),
        ({"Fn::Base64": {"Ref": "P"}}, "v"),
        ({"Fn::GetAZs": ""}, ["nova"]),
        ({"Fn::FindInMap": ["M", {"Ref": "P"}, "k"]}, {"deep": True}),
        (
            {"Fn::MemberListToMap": ["N", "V", [".member.0.N=a", ".member.0.V=1=2", ".member.1.N=b", "junk"]]},
            {"a": "1=2"},
        ),
        ({"Fn::If": ["Yes", {"Ref": "P"}, {"Ref": "b"}]}, "v"),
        ({"Fn::If": ["No", 1, 2]}, 2),
        # The other language's words are data here.
        ({"digest": ["md5", "x"]}, {"digest": ["md5", "x"]}),
        ({"yaql": 1}, {"yaql": 1}),
    ],
)
def test_functions_are_translated(said: Any, expected: Any) -> None:
    found = value(
        said,
        **NAMES,
        Mappings={"M": {"v": {"k": {"deep": True}}}},
        Conditions={
            "Yes": {"Fn::And": [{"Fn::Equals": [{"Ref": "P"}, "v"]}, {"Fn::Not": [{"Condition": "No"}]}]},
            "No": {"Fn::Or": [{"Fn::Equals": [{"Fn::FindInMap": ["M", "v", "k"]}, 1]}, {"Fn::Equals": [1, 2]}]},
        },
    )
    assert found == expected


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"Ref": "nothing"}, "The Parameter .nothing. was not provided"),
        ({"Ref": ["b"]}, "Ref"),
        ({"Fn::GetAtt": ["nothing", "x"]}, "nothing"),
        ({"Fn::GetAtt": ["b"]}, "GetAtt"),
        ({"Fn::GetAtt": {"b": "x"}}, "GetAtt"),
        ({"Fn::Join": "x"}, "Fn::Join"),
        ({"Fn::Join": ["-", [1]]}, "items must be text"),
        ({"Fn::Select": [0]}, "Fn::Select"),
        ({"Fn::Select": ["x", ["a"]]}, "whole number"),
        ({"Fn::Select": [0, "text"]}, "not from text"),
        ({"Fn::FindInMap": ["nothing", "a", "b"]}, "no mapping 'nothing'"),
        ({"Fn::FindInMap": ["M", "v", "nothing"]}, "nothing"),
        ({"Fn::FindInMap": [["M"], "v", "k"]}, "no mapping"),
        ({"Fn::FindInMap": "M"}, "two keys"),
        ({"Fn::MemberListToMap": ["N", "V"]}, "MemberListToMap"),
        ({"Fn::ResourceFacade": "metadata"}, "ResourceFacade"),
        ({"Fn::ResourceFacade": {}}, "ResourceFacade"),
        ({"Fn::If": ["nothing", 1, 2]}, "nothing"),
        ({"Fn::If": ["Yes", 1]}, "if"),
        ({"Fn::Not": ["Yes", "Yes"]}, "Fn::Not"),
    ],
)
def test_errors_are_reported_with_the_reason(said: Any, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        value(said, Mappings={"M": {"v": {"k": 1}}}, Conditions={"Yes": {"Fn::Equals": [1, 1]}})


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (cfn(resources={}), "section is invalid: resources"),
        (cfn(Resources={"a": {"type": "T"}}), "Invalid keyword.*type"),
        (cfn(Resources={"a": {"Properties": {}}}), "type"),
        (cfn(Resources=[]), "a map is needed"),
        (cfn(Parameters={"p": {"Type": "Text"}}), r"Invalid type \(Text\)"),
        (cfn(Parameters={"p": {"type": "String"}}), "Invalid key 'type'"),
        (cfn(Parameters={"AWS::Region": {"Type": "String"}}), "cannot have this name"),
        (cfn(Outputs={"o": {"Description": "x"}}), "value"),
        (cfn(Conditions={"c": {"Ref": "x"}}, Resources={"a": {"Type": "T", "Condition": "c"}}), "x"),
        ({"HeatTemplateFormatVersion": "2010-09-09"}, "should be: 2012-12-12"),
        ({"AWSTemplateFormatVersion": 20}, "should be: 2010-09-09"),
        ({"AWSTemplateFormatVersion": "2010-09-09", "HeatTemplateFormatVersion": "2012-12-12"}, "Ambiguous"),
    ],
)
def test_a_document_that_is_no_template_is_refused(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        hot.decide(hot.parse(document), {})


def test_an_error_names_the_line() -> None:
    text = "AWSTemplateFormatVersion: '2010-09-09'\nResources:\n  a:\n    Type: T\n    Properties:\n      p: {Ref: x}\n"
    with pytest.raises(UserParameterMissing, match="line 6"):
        hot.parse(text)


@pytest.mark.parametrize("name", ["Ref", "Fn::Join", "Fn::Split", "Fn::Replace", "Fn::Base64", "Fn::Select"])
def test_the_oldest_hot_version_has_the_functions(name: str) -> None:
    calls: dict[str, tuple[Any, Any]] = {
        "Ref": ("b", "id of b"),
        "Fn::Join": (["-", ["x", "y"]], "x-y"),
        "Fn::Split": (["-", "x-y"], ["x", "y"]),
        "Fn::Replace": ([{"a": "b"}, "aa"], "bb"),
        "Fn::Base64": ("x", "x"),
        "Fn::Select": ([0, ["x"]], "x"),
    }
    said, expected = calls[name]
    assert value({name: said}, "2013-05-23") == expected
    with pytest.raises(InvalidTemplateVersion, match=f"{name}.*only before"):
        value({name: said}, "2015-10-15")


def test_hot_has_no_mappings() -> None:
    with pytest.raises(InvalidTemplateVersion, match="CloudFormation"):
        value({"Fn::FindInMap": ["M", "a", "b"]}, "2013-05-23")


def test_unknown_values_stay_unknown() -> None:
    template = hot.parse(
        cfn(Resources={"a": {"Type": "T", "Properties": {"p": {"Fn::Select": [0, {"Ref": "b"}]}}}, "b": {"Type": "T"}})
    )
    scope = World("2012-12-12", ids={"b": UNKNOWN})
    assert hot.evaluate(template.resources["a"].properties["p"], scope) is UNKNOWN


words = st.text("abAB:-.", max_size=4) | st.sampled_from(["M", "v", "k", "b", "P", "Yes"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(words | st.sampled_from(["Ref", "Condition"]), inner, max_size=2)
        | st.sampled_from(sorted(hot.functions_of("2012-12-12"))).flatmap(
            lambda name: st.fixed_dictionaries({name: inner})
        )
    ),
    max_leaves=8,
)


@given(said=anything, condition=anything)
def test_any_data_is_a_value_or_a_readable_error(said: Any, condition: Any) -> None:
    try:
        value(said, **NAMES, Mappings={"M": {"v": {"k": 1}}}, Conditions={"Yes": condition})
    except StokerError as error:
        assert error.message


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_its_functions_are_refused_in_hot(name: str) -> None:
    for version in VERSIONS:
        if version < (REPLACED[name].until or ""):
            continue
        with pytest.raises(InvalidTemplateVersion, match=f"'{name}' is not supported"):
            hot.parse({"heat_template_version": version, "outputs": {"o": {"value": {name: "x"}}}})
        with pytest.raises(InvalidTemplateVersion, match=f"'{name}' is not supported"):
            hot.evaluate({name: "x"}, World(version))


def test_the_error_names_the_last_version() -> None:
    with pytest.raises(InvalidTemplateVersion, match="in template version 2021-04-16, only before 2014-10-16"):
        lookup("Ref", max(VERSIONS))


def test_the_functions_are_exactly_these() -> None:
    own = ["Fn::FindInMap", "Fn::MemberListToMap", "Fn::Select", "Fn::Split"]
    assert sorted(hot.functions_of("2012-12-12")) == sorted({*own, *REPLACED})
