"""Sections, names, references and cycles of a template; every error says where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker import hot
from stoker.hot.flaw import MOST
from stoker.hot.syntaxes import VERSIONS
from stoker.model.errors import (
    CircularDependencyException,
    Invalid,
    InvalidTemplateReference,
    InvalidTemplateSection,
    InvalidTemplateVersion,
    StackValidationFailed,
    StokerError,
    UserParameterMissing,
)
from support.templates import document

TEXT = """\
heat_template_version: 2018-08-31
description: Two steps
parameters:
  word: {type: string, default: hi}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      config: {get_file: run.sh}
  first:
    type: OS::Heat::SoftwareDeployment
    deletion_policy: retain
    metadata: {of: {get_resource: config}}
    update_policy: {batch: 1}
    description: the first one
    properties:
      config: {get_resource: config}
      input_values:
        word: {get_param: word}
  second:
    type: OS::Heat::SoftwareDeployment
    depends_on: [config, config]
    properties:
      list:
        - plain
        - {str_replace: {template: x, params: {x: {get_attr: [first, out]}}}}
outputs:
  answer: {value: {get_attr: [second, out]}, description: What came out}
  plain: {value: null}
"""


def parsed_with(old: str, new: str) -> hot.Template:
    assert old in TEXT
    return hot.parse(TEXT.replace(old, new, 1), {"run.sh": "echo"})


def test_a_template_is_parsed_into_definitions() -> None:
    template = hot.parse(TEXT)
    assert (template.version, template.description) == ("2018-08-31", "Two steps")
    assert template.parameters["word"].default == "hi"
    assert template.resources["first"] == hot.Definition(
        name="first",
        type="OS::Heat::SoftwareDeployment",
        properties={"config": {"get_resource": "config"}, "input_values": {"word": {"get_param": "word"}}},
        metadata={"of": {"get_resource": "config"}},
        deletion_policy="Retain",
        update_policy={"batch": 1},
        description="the first one",
    )
    assert template.resources["second"].depends_on == ("config",)
    assert template.requirements == {"config": set(), "first": {"config"}, "second": {"config", "first"}}
    assert hot.order(template) == ("config", "first", "second")
    assert template.outputs["answer"] == hot.OutputDefinition(
        "answer", {"get_attr": ["second", "out"]}, "What came out"
    )
    assert template.outputs["plain"].description == "No description given"


def test_templates_and_definitions_survive_the_database() -> None:
    template = hot.parse(TEXT)
    assert hot.parse(json.loads(json.dumps(template.document))) == template
    for definition in template.resources.values():
        back = hot.Definition.from_json(json.loads(json.dumps(definition.to_json())))
        assert back == definition
        assert back.requires == definition.requires


def test_files_replace_their_names() -> None:
    definition = hot.parse(TEXT).resources["config"]
    assert hot.inline_files(definition, {"run.sh": "echo"}).properties == {"config": "echo"}
    assert hot.inline_files(definition, {"other": "x"}).properties == definition.properties
    assert hot.inline_files(definition, {}) is definition


def test_a_file_that_is_inserted_too_often_is_refused() -> None:
    definition = hot.Definition("a", "x", properties={"list": [{"get_file": "f"}] * 10_000})
    with pytest.raises(StackValidationFailed, match="too large"):
        hot.inline_files(definition, {"f": "x" * 100_000})


def test_null_sections_are_empty_and_resources_are_optional() -> None:
    sections = dict.fromkeys(["parameters", "resources", "outputs", "parameter_groups", "conditions", "description"])
    for source in (document(), document(**sections)):
        parsed = hot.parse(source)
        assert (parsed.resources, parsed.outputs, parsed.parameter_groups) == ({}, {}, ())
        assert parsed.description == "No description"


@pytest.mark.parametrize(("version", "alias"), VERSIONS.items())
def test_every_version_and_its_release_name(version: str, alias: str | None) -> None:
    assert hot.parse(f"heat_template_version: {version}").version == version
    if alias:
        assert hot.parse({"heat_template_version": alias}).version == version


@pytest.mark.parametrize("version", ["2018-08-30", "queen", "", 2018, None, ["2018-08-31"]])
def test_unknown_versions_are_refused_with_a_list(version: Any) -> None:
    with pytest.raises(InvalidTemplateVersion, match=r"should be one of: 2013-05-23, .*2021-04-16, newton"):
        hot.parse({"heat_template_version": version})


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        ("2018-08-31", "2011-01-01", InvalidTemplateVersion, "(line 1)"),
        (
            "outputs:",
            "output:",
            InvalidTemplateSection,
            'The template section is invalid: output; did you mean "outputs"?',
        ),
        ("outputs:", "outputs: []\nx:", StackValidationFailed, "outputs: a map is needed, not a list (line 27)"),
        (
            "description: Two steps",
            "description: [a]",
            StackValidationFailed,
            "description: text is needed, not a list",
        ),
        (
            "get_attr: [first, out]",
            "get_attr: [frst, out]",
            InvalidTemplateReference,
            'Did you mean "first"? (line 26)',
        ),
        ("{get_param: word}", "{get_param: wrd}", UserParameterMissing, "The Parameter (wrd) was not provided."),
        ("  config:\n    type", f"  {'n' * 256}:\n    type", StackValidationFailed, "between 1 and 255 characters"),
    ],
)
def test_an_only_error_has_its_class(old: str, new: str, kind: type[StokerError], message: str) -> None:
    with pytest.raises(StokerError) as caught:
        parsed_with(old, new)
    assert type(caught.value) is kind
    assert message in caught.value.message


def test_a_decoded_template_has_the_same_errors_without_lines() -> None:
    with pytest.raises(StackValidationFailed, match=r'^resources\.a: a resource needs a "type"$'):
        hot.parse(document(resources={"a": {}}))
    for section in ("resources", "parameters", "outputs"):
        with pytest.raises(StackValidationFailed, match=f"{section}: a map is needed, not a list"):
            hot.parse(document(**{section: []}))


def test_deletion_policies_in_lower_case_need_version_newton() -> None:
    def policy(version: str, word: str) -> str:
        resources = {"a": {"type": "x", "deletion_policy": word}}
        return hot.parse(document(version, resources=resources)).resources["a"].deletion_policy

    assert policy("2016-10-14", "snapshot") == "Snapshot"
    assert policy("2013-05-23", "Snapshot") == "Snapshot"
    for version, word in (("2016-04-08", "delete"), ("2016-10-14", "DELETE")):
        with pytest.raises(StackValidationFailed, match="Invalid deletion policy"):
            policy(version, word)


def chain(length: int, **first: Any) -> dict[str, Any]:
    resources = {f"r{i}": {"type": "x", "depends_on": f"r{i - 1}"} for i in range(1, length)}
    return {"r0": {"type": "x", **first}, **resources}


def test_a_chain_of_ten_thousand_is_ordered_and_its_circle_found() -> None:
    parsed = hot.parse(document(resources=dict(reversed(chain(10_000).items()))))
    assert hot.order(parsed) == tuple(f"r{i}" for i in range(10_000))
    with pytest.raises(CircularDependencyException, match=r"Found: \[r0, r9999, r9998, .*, r1, r0\]"):
        hot.parse(document(resources=chain(10_000, depends_on="r9999")))


@pytest.mark.parametrize(
    ("needs", "circle"),
    [
        ({"a": ["a"]}, "[a, a]"),
        ({"a": ["b"], "b": ["a"]}, "[a, b, a]"),
        ({"x": [], "a": ["x", "b"], "b": ["c"], "c": ["a", "x"]}, "[a, b, c, a]"),
        ({"start": ["c"], "c": ["b"], "b": ["c"]}, "[c, b, c]"),
    ],
)
def test_the_error_of_a_circular_dependency_starts_with_the_first_resource(
    needs: dict[str, list[str]], circle: str
) -> None:
    resources = {
        name: {"type": "x", "properties": {"of": [{"get_resource": other} for other in others]}}
        for name, others in needs.items()
    }
    with pytest.raises(CircularDependencyException) as caught:
        hot.parse(document(resources=resources))
    assert caught.value.message == f"Circular Dependency Found: {circle}"


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({}, "a list is needed"),
        ([{"label": "x"}], 'needs a list of "parameters"'),
        ([{"parameters": "word"}], "a list is needed"),
        ([{"parameters": ["wrd"]}], "grouped parameter wrd does not reference"),
        ([{"parameters": [["word"]]}], "does not reference"),
        (
            [{"parameters": ["word"]}, {"parameters": ["word"]}],
            r"parameter_groups\[1\]\.parameters\[0\]: .* one parameter",
        ),
        ([{"parameters": ["word", "word"]}], "one parameter group only"),
        ([{"parameters": [], "x": 1}], "Invalid key 'x'"),
        ([{"parameters": [], "label": {}}], "text is needed"),
    ],
)
def test_parameter_groups_are_checked(groups: Any, words: str) -> None:
    parameters = {"word": {"type": "string"}}
    right = [{"label": "Words", "parameters": ["word"]}]
    assert hot.parse(document(parameters=parameters, parameter_groups=right)).parameter_groups == tuple(right)
    with pytest.raises(Invalid, match=words):
        hot.parse(document(parameters=parameters, parameter_groups=groups))


def test_files_must_be_text() -> None:
    source = document(resources={"r": {"type": "x", "properties": {"p": {"get_file": "f"}}}})
    with pytest.raises(StackValidationFailed, match="the file f is not text"):
        hot.parse(source, {"f": b"x"})  # type: ignore[dict-item]  # what clients must not send


#: One error in each place.
WRONG = """\
heat_template_version: 2018-08-31
descripton: x
parameters:
  word: {type: strin}
  other: {type: string, defaul: x}
  same: {type: string}
resources:
  references:
    type: x
    properties:
      one: {get_param: wrd}
      two: [{get_resource: nobody}, {str_replace: {template: x, params: {x: {get_attr: [reference, x]}}}}]
      three: {get_file: run.sj}
      four: {get_param: ['OS::region', x]}
    metadata: {of: {get_resource: refrences}}
  text: text
  no type: {properties: {}}
  keyword: {type: x, deletion_polcy: Retain}
  policy: {type: x, deletion_policy: keep}
  external: {type: x, external_id: 5}
  metadata: {type: x, metadata: [a]}
  requires: {type: x, depends_on: [text, nothing]}
  number: {type: x, depends_on: [1]}
  same: {type: x}
  a/b: {type: x}
  '': {type: x}
outputs:
  o: {}
  p: text
"""


def test_all_errors_are_reported_at_once_with_path_and_line_in_the_order_of_the_text() -> None:
    with pytest.raises(StackValidationFailed) as caught:
        hot.parse(WRONG, {"run.sh": "echo"})
    assert caught.value.message.splitlines() == [
        'The template section is invalid: descripton; did you mean "description"? (line 2)',
        "parameters.word.type: Invalid type (strin) (line 4)",
        "parameters.other.defaul: Invalid key 'defaul' for parameter (other) (line 5)",
        "Property error: : resources.references.properties.one: : The Parameter (wrd) was not provided."
        ' Did you mean "word"? (line 11)',
        'The specified reference "nobody" (in references.Properties.two[0]) is incorrect. (line 12)',
        'The specified reference "reference" (in references.Properties.two[1].str_replace.params.x) is incorrect.'
        ' Did you mean "references"? (line 12)',
        "Property error: : resources.references.properties.three: : No content"
        ' found in the "files" section for get_file path: run.sj; did you mean "run.sh"? (line 13)',
        "Property error: : resources.references.properties.four: : The Parameter (OS::region) was not provided."
        " (line 14)",
        'The specified reference "refrences" (in references.Metadata.of) is incorrect.'
        ' Did you mean "references"? (line 15)',
        "resources.text: a map is needed, not text (line 16)",
        'resources.no type: a resource needs a "type" (line 17)',
        "resources.keyword.deletion_polcy: Invalid keyword(s) inside a resource definition: deletion_polcy;"
        ' did you mean "deletion_policy"? (line 18)',
        'resources.policy.deletion_policy: Invalid deletion policy "keep" (line 19)',
        "resources.external.external_id: the id of something that is there is needed, in text (line 20)",
        "resources.metadata.metadata: a map is needed, not a list (line 21)",
        'The specified reference "nothing" (in requires) is incorrect. (line 22)',
        "resources.number.depends_on: the name of a resource is needed, or a list of names (line 23)",
        "resources.same: a parameter has the same name (line 24)",
        'resources.a/b: a resource\'s name must not contain "/" (line 25)',
        "resources: a resource's name must have between 1 and 255 characters (line 26)",
        "Output validation error: : outputs.o: : Each output definition must contain a value key. (line 28)",
        "outputs.p: a map is needed, not text (line 29)",
    ]


def test_the_number_of_reported_errors_is_limited() -> None:
    resources = {f"r{i}": {"type": "x", "properties": {"p": {"get_resource": "nobody"}}} for i in range(1000)}
    with pytest.raises(InvalidTemplateReference) as caught:
        hot.parse(document(resources=resources))
    assert len(caught.value.message.splitlines()) == MOST


@pytest.mark.parametrize(
    "value",
    [
        {"get_resource": "nobody"},
        {"get_attr": ["nobody", "x"]},
        {"get_file": "nobody"},
        {"digest": ["md55", "x"]},
        {"str_replace": {"template": "x"}},
        {"if": ["nobody", 1, 2]},
        {"if": "x"},
    ],
)
def test_an_output_that_can_never_have_a_value_refuses_the_template(value: Any) -> None:
    with pytest.raises(StokerError, match=r"outputs\.bad\.value|get_file path: nobody"):
        hot.decide(hot.parse(document(outputs={"bad": {"value": value}, "good": {"value": 1}}), {}), {})


def test_an_unknown_parameter_in_an_output_is_stored_with_the_output() -> None:
    outputs = {"bad": {"value": {"get_param": "nobody"}}, "good": {"value": 1}}
    decided = hot.decide(hot.parse(document(outputs=outputs), {}), {})
    assert decided.outputs["bad"].flaw is not None
    assert decided.outputs["good"].flaw is None


def test_a_function_of_a_later_version_in_an_output_refuses_the_template() -> None:
    outputs = {"bad": {"value": {"str_split": [",", "a"]}}}
    with pytest.raises(InvalidTemplateVersion, match=r"outputs\.bad\.value"):
        hot.parse({"heat_template_version": "2013-05-23", "outputs": outputs})
