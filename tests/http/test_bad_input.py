"""Bad input gets an error that names the thing, in Heat's shape, and changes nothing."""

from __future__ import annotations

import json

import pytest

V = "heat_template_version: 2018-08-31\n"


def resource(kind="OS::Heat::Value", **more):
    return {"type": kind, **more}


def template(**resources):
    return {"heat_template_version": "2018-08-31", "resources": resources}


LAUGHS = (
    V
    + "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
)
CYCLE = template(
    a=resource(properties={"value": {"get_resource": "b"}}), b=resource(properties={"value": {"get_resource": "a"}})
)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (V + "resources: [", "line"),
        (V + "resources:\n\ta: 1\n", "line"),
        (
            V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_parm: [x]}}}}\noutputs: {o: {}}",
            "value",
        ),
        (V + "resources: {a: {type: No::Such}}", "No::Such"),
        (V + "resources: {a: {type: OS::Heat::Value, properties: {colour: 1, value: 1}}}", "colour"),
        (V + "resources: {a: {type: OS::Heat::Value}}", "value"),
        (V + "resources: {a: {type: OS::Heat::RandomString, properties: {length: many}}}", "length"),
        (V + "resources: {a: {type: OS::Heat::RandomString, properties: {length: 0}}}", "length"),
        (V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: who}}}}", "who"),
        (V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_resource: who}}}}", "who"),
        (V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_file: who}}}}", "who"),
        (V + "resources: {a: {type: OS::Heat::Value, depends_on: who, properties: {value: 1}}}", "who"),
        (V + "resources: {a: {type: OS::Heat::SoftwareConfig, properties: {config: [1, 2]}}}", "config"),
        (V + "resources: {a: text}", "a"),
        (V + "resources: text", "resources"),
        (V + "parameters: {p: {type: colour}}", "colour"),
        (V + "parameters: {p: {type: string}}", "p"),
        (V + "surprise: 1", "surprise"),
        (V + "resources: {? [1, 2] : {type: OS::Heat::Value}}", ""),
        ("heat_template_version: 1999-01-01", "1999-01-01"),
        ("resources: {}", "version"),
        ("", ""),
        ("- a\n- b", ""),
        ("just words", ""),
        ("\x00", ""),
        (V + "a: !!python/object/apply:os.system ['true']", ""),
        (V + "resources: &r {a: *r}", ""),
        (LAUGHS, ""),
        (V + "resources: " + "[" * 1_000 + "]" * 1_000, ""),
        (V + "resources: " + "[" * 100_000 + "]" * 100_000, ""),
        (V + "resources: " + "{a: " * 5_000 + "1" + "}" * 5_000, ""),
        (V + "#" + "x" * 10_000_000, ""),
        (V + "description: " + "x" * 10_000_000, ""),
        (CYCLE, "a"),
        (template(a=resource(properties={"value": {"get_resource": "a"}})), "a"),
        (template(**{"a/b": resource(properties={"value": 1})}), "/"),
        (template(**{"": resource(properties={"value": 1})}), ""),
        (template(**{"x" * 300: resource(properties={"value": 1})}), "255"),
        ({"heat_template_version": 20180831}, "20180831"),
        (17, ""),
        ([1], ""),
        (None, "No template specified"),
    ],
)
def test_templates(refused, said, named):
    assert named in refused("POST", "/stacks", {"stack_name": "s", "template": said})


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "1abc",
        "a b",
        "a/b",
        "a\nb",
        "a\x00b",
        "ä",
        "💥",
        "\u202eabc",
        "x" * 256,
        "x" * 10_000,
        5,
        ["a"],
        {"a": 1},
    ],
)
def test_names_of_stacks(refused, name):
    refused("POST", "/stacks", {"stack_name": name, "template": template()})


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"parameters": {"who": 1}}, "who"),
        ({"parameters": [1]}, "parameters"),
        ({"parameters": "a=b"}, "parameters"),
        ({"files": [1]}, "files"),
        ({"files": {"a": 1}}, "a"),
        ({"environment": "a: ["}, "nvironment"),
        ({"environment": {"surprise": {}}}, "surprise"),
        ({"environment": {"parameters": None}}, "parameters"),
        ({"environment": {"resource_registry": {"A": 1}}}, "A"),
        ({"environment_files": "a"}, "environment_files"),
        ({"environment_files": ["gone"]}, "gone"),
        ({"timeout_mins": "soon"}, "timeout_mins"),
        ({"timeout_mins": -1}, "timeout_mins"),
        ({"timeout_mins": 10**30}, "timeout_mins"),
        ({"disable_rollback": "perhaps"}, "disable_rollback"),
        ({"tags": ["a"]}, "tags"),
        ({"tags": "x" * 81}, "tag"),
        ({"template_url": "http://127.0.0.1:1/"}, "template"),
        ({"adopt_stack_data": "{"}, "adopt_stack_data"),
        ({"adopt_stack_data": {"resources": [1]}}, "adopt_stack_data"),
    ],
)
def test_what_comes_with_a_template(refused, more, named):
    body = {"stack_name": "s", "template": template(), **more}
    if "template_url" in more:
        del body["template"]
    assert named in refused("POST", "/stacks", body)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b"{'a': 1}"]
)
@pytest.mark.parametrize("path", ["/stacks", "/software_configs", "/software_deployments", "/validate"])
def test_bodies_that_are_no_objects(refused, path, body):
    refused("POST", path, body)


def test_a_body_that_is_too_long_is_refused_before_it_is_read(refused):
    assert "limit" in refused("POST", "/software_configs", b'{"config": "' + b"x" * 2_000_000 + b'"}')


@pytest.mark.parametrize(
    "body",
    [
        {"name": 5},
        {"name": "x" * 256},
        {"name": "a\x00"},
        {"group": ["script"]},
        {"inputs": {"a": 1}},
        {"inputs": ["a"]},
        {"inputs": [{"name": 1}]},
        {"inputs": [{}]},
        {"inputs": [{"name": "a", "surprise": 1}]},
        {"inputs": [{"name": "a", "type": "Colour"}]},
        {"inputs": [{"name": "a", "type": "Number", "default": "x"}]},
        {"inputs": [{"name": "a"}, {"name": "a"}]},
        {"outputs": "x"},
        {"outputs": [{"name": "a", "error_output": "perhaps"}]},
        {"options": [1]},
    ],
)
def test_configs(refused, body):
    refused("POST", "/software_configs", body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"server_id": "s"},
        {"config_id": "not-there", "server_id": "s"},
        {"config_id": ["x"], "server_id": "s"},
        {"config_id": "not-there", "server_id": "x" * 37},
    ],
)
def test_deployments(refused, body):
    refused("POST", "/software_deployments", body)


@pytest.mark.parametrize(
    "change",
    [
        {"config_id": "gone"},
        {"status": 5},
        {"input_values": [1]},
        {"output_values": "x"},
        {"action": {"a": 1}},
        {"status_reason": "x" * 70_000},
    ],
)
def test_changes_of_a_deployment(stoker, change):
    config = stoker.heat("POST", "/software_configs", {}).body["software_config"]["id"]
    said = {"config_id": config, "server_id": "s"}
    made = stoker.heat("POST", "/software_deployments", said).body["software_deployment"]
    answer = stoker.heat("PUT", f"/software_deployments/{made['id']}", change)
    assert answer.status == 400, answer.raw
    assert stoker.heat("GET", f"/software_deployments/{made['id']}").body["software_deployment"] == made
    stoker.heat("DELETE", f"/software_deployments/{made['id']}")
    stoker.heat("DELETE", f"/software_configs/{config}")


@pytest.mark.parametrize(
    "path",
    [
        "/stacks?limit=x",
        "/stacks?limit=-1",
        "/stacks?show_deleted=perhaps",
        "/stacks?with_count=2",
        "/software_configs?limit=1.5",
        "/software_configs?limit=99999999999999999999",
        "/resource_types?name=(",
        "/stacks?name=%00",
    ],
)
def test_queries(refused, path):
    refused("GET", path)


def test_odd_queries_that_mean_nothing_are_no_faults(stoker):
    for query in ("marker=nothing", "sort_keys=colour", "sort_dir=sideways", "tags=,,", "status=A_B_C"):
        assert stoker.heat("GET", f"/stacks?{query}").status == 200


@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/stacks/none", 404),
        ("GET", "/stacks/none/nobody", 404),
        ("GET", "/stacks/%00/%00", 404),
        ("GET", "/stacks/%F0%9F%92%A5", 404),
        ("GET", "/stacks/" + "x" * 3_000, 404),
        ("DELETE", "/software_configs/none", 404),
        ("GET", "/software_deployments/none", 404),
        ("GET", "/resource_types/No::Such", 404),
        ("GET", "/template_versions/heat_template_version.1999-01-01/functions", 404),
        ("PATCH", "/stacks", 405),
        ("PUT", "/software_configs", 405),
    ],
)
def test_places_that_are_not(refused, verb, path, status):
    refused(verb, path, status=status)


@pytest.fixture
def stack(stoker):
    said = {"stack_name": "there", "template": template(a=resource(properties={"value": 1}))}
    found = stoker.heat("POST", "/stacks", said).body["stack"]
    yield f"/stacks/there/{found['id']}"
    stoker.heat("DELETE", f"/stacks/there/{found['id']}")


@pytest.mark.parametrize(
    ("verb", "below", "body", "status"),
    [
        ("PUT", "", {}, 400),
        ("PUT", "", {"template": template(a=resource("No::Such"))}, 400),
        ("PATCH", "", {"template": CYCLE}, 400),
        ("PATCH", "", {"clear_parameters": "a"}, 400),
        ("POST", "/actions", {}, 400),
        ("POST", "/actions", {"suspend": None, "check": None}, 400),
        ("POST", "/actions", {"explode": None}, 400),
        ("POST", "/actions", {"cancel_update": None}, 400),
        ("POST", "/snapshots", {"name": 5}, 400),
        ("GET", "/snapshots/none", None, 404),
        ("POST", "/snapshots/none/restore", None, 404),
        ("GET", "/outputs/none", None, 404),
        ("GET", "/resources/none", None, 404),
        ("GET", "/resources?colour=red", None, 400),
        ("GET", "/resources?nested_depth=deep", None, 400),
        ("POST", "/resources/a/signal", {"x": 1}, 400),
        ("POST", "/resources/none/signal", {}, 404),
        ("POST", "/resources/a/signal", b"[]", 400),
        ("PATCH", "/resources/a", {}, 400),
        ("PATCH", "/resources/a", {"mark_unhealthy": "perhaps"}, 400),
        ("PATCH", "/resources/a", {"mark_unhealthy": True, "colour": 1}, 400),
        ("GET", "/events?limit=few", None, 400),
        ("GET", "/resources/none/events", None, 404),
        ("GET", "/resources/a/events/none", None, 404),
    ],
)
def test_what_is_asked_of_a_stack(stoker, stack, refused, verb, below, body, status):
    before = stoker.heat("GET", stack).body
    refused(verb, f"{stack}{below}", body, status=status)
    assert stoker.heat("GET", stack).body == before


def test_a_template_in_json_text_is_as_good(stoker):
    said = json.dumps(template(a=resource(properties={"value": 1})))
    made = stoker.heat("POST", "/stacks", {"stack_name": "json", "template": said})
    assert made.status == 201
    stoker.heat("DELETE", f"/stacks/json/{made.body['stack']['id']}")


def test_what_could_not_be_told_again_is_not_taken(refused):
    """Encoders end near a thousand levels, and what is taken goes out wrapped into more."""
    deep = b"[" * 900 + b"]" * 900
    for path in ("/software_configs", "/software_deployments", "/stacks"):
        body = b'{"stack_name": "deep", "config": ' + deep + b', "template": {"heat_template_version": "2018-08-31"}}'
        assert "nested too deeply" in refused("POST", path, body)
