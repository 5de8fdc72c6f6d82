"""Everything wrong with a template in one answer, in Heat's words where Heat has words, and what is only odd."""

# ruff: noqa: E501 - whole sentences of Heat

from __future__ import annotations

import json

import pytest

from stoker import hot
from stoker.model.errors import (
    InvalidTemplateVersion,
    StackValidationFailed,
    StokerError,
    UnknownUserParameter,
    UserParameterMissing,
)
from stoker.stacks.templates import lookup
from stoker.stacks.templates.prepare import StackRequest
from stoker.stacks.templates.validation import describe_template
from support.templates import VERSION, define, template

#: Refused before anything is stored.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

WRONG = f"""\
heat_template_version: {VERSION}
parameters:
  need: {{type: string}}
  count: {{type: number}}
resources:
  net: {{type: OS::Octavia::LoadBalancer}}
  net2: {{type: OS::Octavia::LoadBalancer}}
  misspelt: {{type: OS::Heat::SoftwareDeploymnt}}
  value:
    type: OS::Heat::Value
    properties:
      valu: 1
      type: strin
  other:
    type: OS::Heat::Value
    properties:
      value: [{{get_attr: [value, valeu]}}, {{get_resource: net}}]
  text: {{type: OS::Heat::RandomString, properties: {{length: many}}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {{resource_def: {{type: OS::Heat::Value, properties: {{color: 1, value: 2}}}}}}
"""
NOT_FOUND = "could not be found. Resources of that type:"


def test_all_errors_are_reported_with_lines_and_remedies(heat):
    with pytest.raises(StackValidationFailed) as caught:
        heat.create(WRONG, parameters={"count": "x"})
    assert caught.value.message.splitlines() == [
        "The Parameter (need) was not provided. (line 3)",
        "Parameter 'count' is invalid: \"x\" is not a number (line 4)",
        f"The Resource Type (OS::Octavia::LoadBalancer) {NOT_FOUND} net, net2. Stoker has no such type of OS::Octavia: map the type"
        " to OS::Heat::None, or to a template, in the environment's resource_registry. (line 6)",
        f"The Resource Type (OS::Heat::SoftwareDeploymnt) {NOT_FOUND} misspelt."
        ' Did you mean "OS::Heat::SoftwareDeployment"? (line 8)',
        "Property error: : resources.value.properties: : Property value not assigned (line 11)",
        'Property error: : resources.value.properties: : Unknown Property valu; did you mean "value"? (line 12)',
        'Property error: : resources.value.properties.type: : "strin" is not an allowed value ["string", "number",'
        ' "comma_delimited_list", "json", "boolean"]; did you mean "string"? (line 13)',
        "resources.other.properties.value.get_attr: : The Referenced Attribute (value valeu) is incorrect."
        ' Did you mean "value"? (line 17)',
        "Property error: : resources.text.properties.length: : Value 'many' is not an integer (line 18)",
        "Property error: : resources.group<nested_stack>.resources[0].properties: : Unknown Property color;"
        " known are type, value (line 19)",
    ]


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        # What a real Heat 27 said of the same templates.
        ({"properties": {"value": {"get_param": "missing"}}}, "resources.r.properties.value: : The Parameter (missing) was not provided."),
        ({"properties": {"valu": 1, "value": 2}}, "resources.r.properties: : Unknown Property valu"),
        ({}, "resources.r.properties: : Property value not assigned"),
        ({"properties": {"value": {"get_file": "no"}}}, 'resources.r.properties.value: : No content found in the "files" section for get_file path: no'),
        ({"properties": {"value": 1, "type": "foo"}}, 'resources.r.properties.type: : "foo" is not an allowed value ["string", "number", "comma_delimited_list", "json", "boolean"]'),
        (define("OS::Heat::RandomString", length=0), "resources.r.properties.length: : 0 is out of range (min: 1, max: 512)"),
        (define("OS::Heat::SoftwareConfig", inputs=[{"nam": "x", "name": "x"}]), "resources.r.properties.inputs[0]: : Unknown Property nam"),
        (define("inner.yaml", p=99), "resources.r.properties.p: : 99 is out of range (min: None, max: 5)"),
        (define("inner.yaml", p=1, l={"a": 1}), "resources.r.properties.l: : a list or text with commas"),
        (define("inner.yaml", p=1, color=1), "resources.r.properties: : Unknown Property color"),
        ({"type": "inner.yaml"}, "resources.r.properties: : Property p not assigned"),
        ({"type": "wrong.yaml"}, "resources.r<wrong.yaml>.resources.v.properties: : Unknown Property valu"),
    ],
)  # fmt: skip
def test_an_invalid_property_is_reported_in_heats_wording(heat, resource, words):
    version = f"heat_template_version: {VERSION}\n"
    files = {
        "inner.yaml": f"{version}parameters: {{p: {{type: number, constraints: [{{range: {{max: 5}}}}]}},"
        " l: {type: comma_delimited_list, default: ''}}\n",
        "wrong.yaml": f"{version}resources: {{v: {{type: OS::Heat::Value, properties: {{valu: 1, value: 1}}}}}}\n",
    }
    said = template({"r": {"type": "OS::Heat::Value", **resource}})
    with pytest.raises(StokerError) as caught:
        heat.create(said, files=files)
    assert caught.value.message.startswith(f"Property error: : {words}")
    # Heat doubles the colons only where an error has passed from its engine to its API.
    with pytest.raises(StokerError) as caught:
        describe_template(heat.engine, StackRequest(template=said, files=files), show_nested=False)
    assert caught.value.message.startswith(f"Property error: {words.replace(': : ', ': ')}")


@pytest.mark.parametrize("condition", [True, {"equals": [{"get_param": "mistaken"}, 1]}])
def test_a_reference_to_what_is_mistaken_itself_is_no_other_mistake(heat, condition):
    uses = [{"get_attr": ["wrong", "value"]}, {"get_resource": "wrong"}, {"get_param": "mistaken"}]
    said = template(
        {
            "wrong": {**define("OS::Heat::Value", value=1), "depend_on": "user"},
            "user": {**define("OS::Heat::Value", value=uses), "depends_on": "wrong", "condition": "asked"},
        },
        parameters={"mistaken": {"type": "text"}},
        conditions={"asked": condition},
        outputs={"all": {"value": {"if": ["asked", uses, None]}}},
    )
    with pytest.raises(StackValidationFailed) as caught:
        heat.create(said)
    assert caught.value.message.splitlines() == [
        "parameters.mistaken.type: Invalid type (text)",
        "resources.wrong.depend_on: Invalid keyword(s) inside a resource definition: depend_on; did you mean"
        ' "depends_on"?',
    ]


def test_hidden_values_are_redacted_in_errors_and_warnings(heat):
    port = {"make_url": {"host": "a", "port": {"get_param": "hidden"}}}
    parameters = {"hidden": {"type": "string", "hidden": True}}

    def described(said):
        request = StackRequest(template=said, parameters={"hidden": "topsecret"})
        return describe_template(heat.engine, request, show_nested=False)

    with pytest.raises(StackValidationFailed, match=r"\*{6}") as caught:
        described(template({"r": define("OS::Heat::Value", value=port)}, parameters=parameters))
    assert "topsecret" not in caught.value.message
    (warning,) = described(template({}, parameters=parameters, outputs={"o": {"value": port}}))["Warnings"]
    assert "topsecret" not in warning


def test_a_function_of_another_version_is_reported_once(heat):
    said = template({}, outputs={"o": {"value": [{"Fn::Join": ["", []]}]}})
    with pytest.raises(InvalidTemplateVersion) as caught:
        heat.create(said)
    assert len(caught.value.message.splitlines()) == 1


def test_a_single_kind_of_error_keeps_its_class(heat):
    said = template({}, parameters={"a": {"type": "string"}, "b": {"type": "string"}})
    with pytest.raises(UserParameterMissing) as caught:
        heat.create(said)
    assert caught.value.message == "The Parameter (a) was not provided.\nThe Parameter (b) was not provided."


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["x", {"get_attr": ["value", "valeu"]}], "outputs.o.value: : The Referenced Attribute (value valeu) is inc"),
        ({"get_attr": ["nobody", "x"]}, 'The specified reference "nobody" (in outputs.o.value) is incorrect.'),
        ({"digest": ["md55", "x"]}, "outputs.o.value.digest: "),
    ],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_typing_error_in_an_output_refuses_the_stack(heat, value, words, is_nested):
    wrong = template({"value": define("OS::Heat::Value", value=1)}, outputs={"o": {"value": value}})
    outer, files = (template({"in": {"type": "i.yaml"}}), {"i.yaml": json.dumps(wrong)}) if is_nested else (wrong, {})
    with pytest.raises(StokerError) as caught:
        heat.create(outer, files=files)
    assert words in caught.value.message
    assert ("i.yaml" in caught.value.message) == is_nested
    with pytest.raises(StokerError):
        describe_template(heat.engine, StackRequest(template=outer, files=files), show_nested=False)


def test_an_update_policy_has_only_the_keys_of_its_type(heat):
    policy = {"rolling_updates": {"max_batch_size": 1}}
    with pytest.raises(StokerError, match=r"resources\.r\.update_policy.*Unknown Property rolling_updates"):
        heat.create(template({"r": define("OS::Heat::Value", value=1) | {"update_policy": policy}}))
    assert str(heat.create(template({"r": {"type": "OS::Heat::None", "update_policy": policy}})).status) == "COMPLETE"


def test_validate_refuses_unknown_parameters(heat):
    said = template({}, parameters={"word": {"type": "string"}})
    for request in (
        StackRequest(said, parameters={"wrod": "x"}),
        StackRequest(said, environment={"parameters": {"wrod": 1}}),
    ):
        with pytest.raises(UnknownUserParameter, match=r"The Parameter \(wrod\) was not defined in template"):
            describe_template(heat.engine, request, show_nested=False)


PATTERN = {"word": {"type": "string", "default": "x", "constraints": [{"allowed_pattern": "a(?!b)"}]}}
REFUSED = {"w": define("OS::Heat::Value", value={"get_param": "word"})}


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("is_validated", [False, True])
def test_a_refused_pattern_is_the_only_error(heat, is_nested, is_validated):
    said, files, given = template(REFUSED, parameters=PATTERN), {}, {"word": "x"}
    if is_nested:
        files, given = {"i.yaml": json.dumps(said)}, {}
        said = template({"in": define("i.yaml", word="x")})
    with pytest.raises(StokerError) as caught:
        if is_validated:
            describe_template(heat.engine, StackRequest(said, files, parameters=given), show_nested=False)
        else:
            heat.create(said, files=files, parameters=given)
    assert "a negative look-ahead" in caught.value.message
    assert len(caught.value.message.splitlines()) == 1


OUTPUTS = {
    "good": {"value": 1},
    "parameter": {"value": {"get_param": "nobody"}},
    "index": {"value": {"str_split": [",", "a,b", 5]}},
}


def test_an_error_in_an_output_is_the_outputs_error_and_a_warning(heat):
    said = template({"value": define("OS::Heat::Value", value=1)}, outputs=OUTPUTS)
    stack = heat.create(said)
    assert str(stack.status) == "COMPLETE"
    assert heat.outputs(stack) == {**dict.fromkeys(OUTPUTS), "good": 1}
    assert heat.output_errors(stack) == {
        "parameter": "The Parameter (nobody) was not provided.",
        "index": heat.output_errors(stack)["index"],
    }
    assert "5" in heat.output_errors(stack)["index"]
    warnings = describe_template(heat.engine, StackRequest(template=said), show_nested=False)["Warnings"]
    assert warnings == [f"outputs.{name}: {error}" for name, error in heat.output_errors(stack).items()]
    assert "Warnings" not in describe_template(heat.engine, StackRequest(template=template({})), show_nested=False)


def test_an_error_in_an_output_of_a_nested_template_is_a_warning(heat):
    inner = (
        f"heat_template_version: {VERSION}\noutputs: {{o: {{value: {{get_param: nobody}}}}, p: {{value: 1, x: 2}}}}\n"
    )
    said = template({"in": {"type": "inner.yaml"}})
    stack = heat.create(said, files={"inner.yaml": inner})
    assert str(stack.status) == "COMPLETE"
    handed = StackRequest(template=said, files={"inner.yaml": inner})
    assert describe_template(heat.engine, handed, show_nested=False)["Warnings"] == [
        "resources.in<inner.yaml>.outputs.p.x: Invalid keyword(s) inside an output definition: x",
        "resources.in<inner.yaml>.outputs.o: The Parameter (nobody) was not provided.",
    ]


REMOTE = "OS::Heat::Stack"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"context": {"region_name": "Nowhere"}, "template": "x"}, 'Cannot establish connection to Heat endpoint at region "Nowhere" due to "'),
        ({"template": "nonsense: ["}, 'Failed validating stack template using Heat endpoint at region "None" due to "ERROR: Template not in valid format'),
        ({"template": f"heat_template_version: {VERSION}\nresources: {{a: {{type: No::Such}}}}\n"}, 'Failed validating stack template using Heat endpoint at region "None" due to "ERROR: The Resource Type (No::Such) could not be found.'),
        ({"template": f"heat_template_version: {VERSION}\n", "parameters": {"p": 1}}, 'Failed validating stack template using Heat endpoint at region "None" due to "ERROR: The Parameter (p) was not defined in template.'),
        ({"template": f"heat_template_version: {VERSION}\nparameters: {{p: {{type: string}}}}\n"}, 'Failed validating stack template using Heat endpoint at region "None" due to "ERROR: The Parameter (p) was not provided'),
        ({"template": {"get_file": "self.yaml"}}, "Recursion depth of OS::Heat::Stack exceeds 5."),
    ],
)  # fmt: skip
def test_an_invalid_remote_stack_is_refused_before_the_create(heat, properties, words):
    said = template({"s": define(REMOTE, **properties)})
    with pytest.raises(StokerError) as caught:
        heat.create(said, files={"self.yaml": json.dumps(said)})
    assert words in caught.value.message


def test_a_remote_stack_may_have_parameters(heat):
    """Some are known at run time only."""
    inner = f"heat_template_version: {VERSION}\nparameters: {{p: {{type: string}}}}\n"
    for given in ("OS::stack_name", "late"):
        value = {"get_param": given} if given != "late" else {"get_attr": ["server", "name"]}
        remote = define(REMOTE, template=inner, parameters={"p": value})
        stack = heat.create(template({"server": {"type": "OS::Nova::Server"}, "s": remote}), name=given[4:])
        assert str(stack.status) == "IN_PROGRESS"


def test_a_file_that_cannot_be_read_is_read_once(heat, monkeypatch):

    read = []
    monkeypatch.setattr(lookup, "parse_once", lambda text: read.append(text) or hot.parse(text))
    resources = {f"r{i}": {"type": "wrong.yaml"} for i in range(20)}
    with pytest.raises(StokerError, match=r"resources\.r19\.type: wrong\.yaml: "):
        heat.create(template(resources), files={"wrong.yaml": "nonsense: ["})
    assert len(read) == 1


def test_a_site_without_a_provider_names_the_distribution_of_the_types_of_a_cloud(database_url):
    remedy = lookup.describe_remedy("OS::Neutron::Net", ["OS::Heat::None", "OS::Nova::Server"])
    assert "are in plugins/openstack of Stoker's source: install it, or map the type" in remedy


def test_properties_of_a_deployment_may_depend_on_a_condition_that_is_not_decided_yet(heat):
    nested = """
    heat_template_version: 2021-04-16
    parameters: {p: {type: number}}
    conditions: {is_one: {equals: [{get_param: p}, 1]}}
    resources:
      d:
        type: OS::Heat::SoftwareDeployment
        properties: {if: [is_one, {server: a, config: b}, {server: c, config: b}]}
    """
    value = define("OS::Heat::Value", value=1)
    inner = define("nested.yaml", p={"get_attr": ["v", "value"]})
    stack = heat.create(template({"v": value, "n": inner}), files={"nested.yaml": nested})
    assert "The Software config (b) could not be found" in stack.reason


def test_properties_of_a_groups_members_may_be_unknown_until_the_stack_exists(heat):
    value = define("OS::Heat::Value", value={"value": "x"})
    member = define("OS::Heat::Value", get_attr=["v", "value"])
    group = define("OS::Heat::ResourceGroup", resource_def=member)
    stack = heat.create(template({"v": value, "g": group}, outputs={"o": {"value": {"get_attr": ["g", "value"]}}}))
    assert stack.status == "COMPLETE", stack.reason
