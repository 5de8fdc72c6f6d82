"""What a real Heat 27 answered to the same requests: clients compare whole answers."""

from __future__ import annotations

import json

import pytest

from stoker_client.wire import warnings_in
from support.templates import config, define, deployment, document, server, template

pytestmark = pytest.mark.slow

INNER = """
heat_template_version: 2018-08-31
parameters:
  p: {type: string}
  q: {type: string, default: dq}
resources: {v: {type: OS::Heat::Value, properties: {value: {get_param: p}}}}
outputs: {o: {value: {get_attr: [v, value]}}}
"""
TEMPLATE = template(
    {
        "n": define("inner.yaml", p={"get_param": "a"}, q="lit"),
        "m": define("My::T", p="x"),
        "g": define("OS::Heat::ResourceGroup", count=2, resource_def=define("inner.yaml", p="k")),
    },
    description="d",
    parameters={
        "a": {"type": "number", "default": "10"},
        "l": {"type": "comma_delimited_list", "default": "a,b"},
        "h": {"type": "string", "hidden": True, "default": "x"},
        "j": {"type": "json", "default": {"a": 1}},
        "w": {"type": "string", "default": "dd"},
    },
)
ASKED = {
    "template": TEMPLATE,
    "files": {"inner.yaml": INNER},
    "environment": {
        "parameters": {"h": "secret"},
        "parameter_defaults": {"w": "pd", "q": "pq"},
        "resource_registry": {"My::T": "inner.yaml"},
    },
    "parameters": {"a": "7"},
}


def parameter(name, kind, **more):
    return {"Type": kind, "Description": "", "NoEcho": "false", "Label": name, **more}


def inner(**values):
    given = {name: {"Value": value} for name, value in values.items()}
    return {
        "p": parameter("p", "String", **given.get("p", {})),
        "q": parameter("q", "String", Default="pq", **given.get("q", {})),
    }


def nested(kind, parameters, **more):
    return {"Type": kind, "Description": "No description", "Parameters": parameters, **more}


def test_validate_lists_the_parameters(stoker):
    answer = stoker.heat("POST", "/validate?show_nested=true", ASKED)
    assert (answer.status, answer.body) == (
        200,
        {
            "Description": "d",
            "Parameters": {
                "a": parameter("a", "Number", Default="10", Value="7"),
                "l": parameter("l", "CommaDelimitedList", Default="a,b"),
                # Heat shows hidden values that the request gives; Stoker does not repeat them.
                "h": parameter("h", "String", Default="x", Value="******", NoEcho="true"),
                "j": parameter("j", "Json", Default={"a": 1}),
                "w": parameter("w", "String", Default="pd"),
            },
            "NestedParameters": {
                "n": nested("inner.yaml", inner(p="7", q="lit")),
                "m": nested("My::T", inner(p="x")),
                "g": nested("OS::Heat::ResourceGroup", {}, NestedParameters={"0": nested("inner.yaml", inner(p="k"))}),
            },
            "Environment": {
                "parameters": {"a": "7", "h": "******"},
                "parameter_defaults": {"w": "pd", "q": "pq"},
                "resource_registry": {"My::T": "inner.yaml", "inner.yaml": "inner.yaml", "resources": {}},
                "event_sinks": [],
            },
        },
    )


def previewed(name, project, value, parent, stack):
    identity = {"tenant": project, "stack_name": stack, "stack_id": "None"}
    return {
        "resource_name": name,
        "resource_type": "OS::Heat::Value",
        "resource_action": "INIT",
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_identity": {**identity, "path": f"/resources/{name}"},
        "stack_identity": {**identity, "path": ""},
        "stack_name": stack,
        "physical_resource_id": "",
        "creation_time": None,
        "updated_time": None,
        "description": "",
        "metadata": {},
        "required_by": [],
        "properties": {"type": None, "value": value},
        "parent_resource": parent,
        # Heat shows what the attribute would be; Stoker what it is.
        "attributes": {"value": None},
    }


def test_a_preview_of_a_new_stack_lists_its_resources(stoker):
    shown = stoker.heat("POST", "/stacks/preview", {**ASKED, "stack_name": "prev", "tags": "x,y"}).body["stack"]
    assert shown["id"] == "None"
    assert shown["links"][0]["href"].endswith("/stacks/prev/None")
    assert (shown["outputs"], shown["tags"], shown["parent"]) == ([], ["x", "y"], None)
    assert shown["parameters"]["OS::stack_id"] == "None"
    assert not shown.keys() & {"stack_status", "stack_status_reason"}
    project = stoker.project
    assert shown["resources"] == [
        [previewed("v", project, "7", "n", "prev-n")],
        [previewed("v", project, "x", "m", "prev-m")],
        [
            [previewed("v", project, "k", "0", "prev-g-0")],
            [previewed("v", project, "k", "1", "prev-g-1")],
        ],
    ]


def test_a_preview_lists_dependents_and_known_outputs(stoker):
    unknown = {"get_attr": ["a", "value"]}
    resources = {
        "a": define("OS::Heat::Value", value=1),
        "b": define("OS::Heat::Value", value={"get_resource": "a"}),
        "c": define("OS::Heat::Value", value=1) | {"depends_on": "a", "metadata": {"k": unknown}},
    }
    said = template(resources, outputs={"known": {"value": 5}, "unknown": {"value": unknown}})
    shown = stoker.heat("POST", "/stacks/preview", {"stack_name": "prev", "template": said}).body["stack"]
    required_by = {each["resource_name"]: each["required_by"] for each in shown["resources"]}
    assert required_by == {"a": ["b", "c"], "b": [], "c": []}
    assert shown["resources"][2]["metadata"] == {"k": None}
    assert {each["output_key"]: each["output_value"] for each in shown["outputs"]} == {"known": 5, "unknown": None}


NONE = {"type": "OS::Heat::None"}


@pytest.mark.parametrize(
    ("group", "members"),
    [
        (define("OS::Heat::SoftwareDeploymentGroup", servers={"x": "1", "y": "2"}), ["x", "y"]),
        (define("OS::Heat::ResourceChain", resources=["OS::Heat::None"] * 2), ["0", "1"]),
        (
            define("OS::Heat::ResourceGroup", count=2, resource_def=NONE, removal_policies=[{"resource_list": ["0"]}]),
            ["1", "2"],
        ),
    ],
    ids=["deployments", "chain", "group without a member"],
)
def test_a_preview_shows_the_members_of_other_groups(stoker, group, members):
    body = {"stack_name": "prev", "template": template({"g": group})}
    [shown] = stoker.heat("POST", "/stacks/preview", body).body["stack"]["resources"]
    assert [each["resource_name"] for each in shown] == members


def test_too_many_group_members_are_refused(stoker):
    group = define("OS::Heat::ResourceGroup", count=200, resource_def=NONE)
    outer = define("OS::Heat::ResourceGroup", count=200, resource_def=group)
    answer = stoker.heat("POST", "/stacks/preview", {"stack_name": "prev", "template": template({"g": outer})})
    assert (answer.status, answer.body["error"]["type"]) == (400, "RequestLimitExceeded")


def test_an_untagged_stack_has_an_empty_list_of_tags(stoker):
    path = stoker.create_stack("tagless", template({}))
    assert stoker.stack(path)["tags"] == []
    listed = stoker.heat("GET", "/stacks?name=tagless").body["stacks"]
    assert [each["tags"] for each in listed] == [None]
    stoker.heat("DELETE", path)


ODD = document(outputs={"o": {"value": {"get_param": 'näme, \n"x"'}}, "fine": {"value": 1}})


def test_an_error_in_an_output_is_a_warning_of_every_request(stoker):
    made = stoker.heat("POST", "/stacks", {"stack_name": "odd-output", "template": ODD})
    assert made.status == 201, made.body
    path = f"/stacks/odd-output/{made.body['stack']['id']}"
    answers = [
        made,
        stoker.heat("PUT", path, {"template": ODD}),
        stoker.heat("PATCH", path, {}),
        stoker.heat("PUT", f"{path}/preview", {"template": ODD}),
        stoker.heat("POST", "/stacks/preview", {"stack_name": "new", "template": ODD}),
        stoker.heat("POST", "/validate", {"template": ODD}),
    ]
    for answer in answers:
        assert answer.status < 300, answer.body
        [warning] = warnings_in(answer.headers["Warning"])
        assert warning.startswith('outputs.o: The Parameter (näme, \n"x") was not provided.')
    assert answers[-1].body["Warnings"] == [warning]
    shown = {each["output_key"]: each for each in stoker.heat("GET", path).body["stack"]["outputs"]}
    assert (shown["fine"]["output_value"], shown["o"]["output_value"]) == (1, None)
    assert shown["o"]["output_error"].startswith("The Parameter")
    stoker.heat("DELETE", path)


def test_a_resource_shows_which_server_its_deployment_waits_for(stoker):
    resources = {"server": server("absent"), "config": config("true"), "run": deployment()}
    path = stoker.create_stack("waits", template(resources))
    shown = stoker.heat("GET", f"{path}/resources/run").body["resource"]
    assert shown["deployment"]["status_reason"] == "Waiting for the agent: absent is NEVER_SEEN"


def test_a_preview_shows_present_values_without_secrets(stoker):
    values = define("OS::Heat::Value", value={"get_param": "word"})
    secret = define("OS::Heat::Value", value={"list_join": [":", ["user", {"get_param": "password"}]]})
    parameters = {"word": {"type": "string"}, "password": {"type": "string", "hidden": True}}
    said = template({"values": values, "secret": secret}, parameters=parameters)
    path = stoker.create_stack("previewed", said, parameters={"word": "one", "password": "0ld-password"})
    body = {"template": said, "parameters": {"word": "two", "password": "n3w-password"}}
    answer = stoker.heat("PUT", f"{path}/preview", body).body["resource_changes"]
    shown = {change["resource_name"]: change for change in answer["updated"]}
    assert shown["values"]["previous_properties"] == {"value": "one"}
    assert shown["secret"]["previous_properties"] == {"value": "user:******"}
    assert "password" not in json.dumps([change["previous_properties"] for change in shown.values()])
