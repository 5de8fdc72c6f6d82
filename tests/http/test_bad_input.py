"""Bad input gets an error that names the thing, in Heat's shape, and changes nothing."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

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
        (V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: who}}}}", "who"),
        (V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_file: who}}}}", "who"),
        ("just words", "YAML mapping"),
        ("\x00", "control characters"),
        (V + "a: !!python/object/apply:os.system ['true']", "os.system"),
        (V + "resources: &r {a: *r}", "contains itself"),
        (LAUGHS, "aliases"),
        (V + "resources: " + "[" * 1_000 + "]" * 1_000, "too deeply"),
        (V + "resources: " + "[" * 100_000 + "]" * 100_000, "too deeply"),
        (V + "resources: " + "{a: " * 5_000 + "1" + "}" * 5_000, "too deeply"),
        (V + "#" + "x" * 10_000_000, "limit"),
        (V + "description: " + "x" * 10_000_000, "limit"),
        (CYCLE, "Circular Dependency Found: [a, b, a]"),
        (template(**{"x" * 300: resource(properties={"value": 1})}), "255"),
        ({"heat_template_version": 20180831}, "20180831"),
        (17, "JSON object"),
        ([1], "JSON object"),
        (None, "No template specified"),
    ],
)
def test_invalid_templates_are_refused(refused, said, named):
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
def test_invalid_stack_names_are_refused(refused, name):
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
        ({"environment_files": [["gone"]]}, "environment_files"),
        ({"environment_files": [{}], "files": {}}, "environment_files"),
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
def test_invalid_parameters_files_and_environments_are_refused(refused, more, named):
    body = {"stack_name": "s", "template": template(), **more}
    if "template_url" in more:
        del body["template"]
    assert named in refused("POST", "/stacks", body)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b"{'a': 1}"]
)
@pytest.mark.parametrize("path", ["/stacks", "/software_configs", "/software_deployments", "/validate"])
def test_bodies_that_are_not_objects_are_refused(refused, path, body):
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
        {"outputs": "x"},
        {"outputs": [{"name": "a", "error_output": "perhaps"}]},
        {"options": [1]},
    ],
)
def test_invalid_configs_are_refused(refused, body):
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
def test_invalid_deployments_are_refused(refused, body):
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
def test_invalid_changes_of_a_deployment_are_refused(stoker, change):
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
        "/stacks?limit=" + "9" * 5_000,
        "/software_deployments?server_id=%00",
    ],
)
def test_invalid_queries_are_refused(refused, path):
    refused("GET", path)


def test_unknown_queries_are_ignored(stoker):
    for query in ("marker=nothing", "sort_keys=color", "sort_dir=sideways", "tags=,,", "status=A_B_C"):
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
def test_unknown_paths_are_404(refused, verb, path, status):
    refused(verb, path, status=status)


@pytest.fixture
def stack(stoker):
    handle = resource("OS::Heat::WaitConditionHandle")
    said = {"stack_name": "there", "template": template(a=resource(properties={"value": 1}), handle=handle)}
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
        ("GET", "/resources?color=red", None, 400),
        ("GET", "/resources?nested_depth=deep", None, 400),
        ("POST", "/resources/a/signal", {"x": 1}, 400),
        ("POST", "/resources/none/signal", {}, 404),
        ("POST", "/resources/a/signal", b"[]", 400),
        ("PATCH", "/resources/a", {}, 400),
        ("PATCH", "/resources/a", {"mark_unhealthy": "perhaps"}, 400),
        ("PATCH", "/resources/a", {"mark_unhealthy": True, "color": 1}, 400),
        ("GET", "/events?limit=few", None, 400),
        ("GET", "/resources/none/events", None, 404),
        ("GET", "/resources/a/events/none", None, 404),
    ],
)
def test_invalid_actions_on_a_stack_are_refused(stoker, stack, refused, verb, below, body, status):
    before = stoker.heat("GET", stack).body
    refused(verb, f"{stack}{below}", body, status=status)
    assert stoker.heat("GET", stack).body == before


def test_a_template_in_json_text_is_accepted(stoker):
    said = json.dumps(template(a=resource(properties={"value": 1})))
    made = stoker.heat("POST", "/stacks", {"stack_name": "json", "template": said})
    assert made.status == 201
    stoker.heat("DELETE", f"/stacks/json/{made.body['stack']['id']}")


def test_bodies_too_deep_to_be_returned_are_refused(refused):
    """Encoders end near a thousand levels, and what is taken goes out wrapped into more."""
    deep = b"[" * 900 + b"]" * 900
    for path, member in (("/software_configs", b"config"), ("/software_deployments", b"x"), ("/stacks", b"parameters")):
        body = (
            b'{"stack_name": "d", "'
            + member
            + b'": '
            + deep
            + b', "template": {"heat_template_version": "2018-08-31"}}'
        )
        assert "nested too deeply" in refused("POST", path, body)


def nested(levels):
    return "[" * levels + "]" * levels


#: Every place where any JSON, or text of it, may be said: what stands in for DEEP is as deep as it likes.
DEEP_PLACES = [
    ("POST", "/software_configs", '{"config": DEEP}'),
    ("POST", "/software_configs", '{"options": {"a": DEEP}}'),
    ("POST", "/software_configs", '{"inputs": [{"name": "a", "type": "Json", "default": DEEP}]}'),
    ("POST", "/software_configs", '{"name": DEEP}'),
    ("POST", "/software_deployments", '{"config_id": "none", "server_id": "s", "input_values": {"a": DEEP}}'),
    ("POST", "/stacks", '{"stack_name": DEEP}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": DEEP}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": {"heat_template_version": "2018-08-31", "resources": DEEP}}'),
    (
        "POST",
        "/stacks",
        '{"stack_name": "s", "template": TEMPLATE, "environment": {"parameter_defaults": {"a": DEEP}}}',
    ),
    ("POST", "/stacks", '{"stack_name": "s", "template": TEMPLATE, "environment": "parameter_defaults: {a: DEEP}"}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": TEMPLATE, "parameters": {"p": DEEP}}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": TEMPLATE, "parameters": {"p": "DEEP"}}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": TEMPLATE, "files": {"f": DEEP}}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": TEMPLATE, "disable_rollback": DEEP}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": TEMPLATE, "adopt_stack_data": "DEEP"}'),
    ("POST", "/servers", '{"name": DEEP}'),
    ("POST", "/validate", '{"template": TEMPLATE, "parameters": {"p": DEEP}}'),
    ("PATCH", "{stack}", '{"clear_parameters": [DEEP]}'),
    ("PUT", "{stack}/preview", '{"template": TEMPLATE, "parameters": {"p": DEEP}}'),
    ("POST", "{stack}/actions", '{"suspend": DEEP}'),
    ("POST", "{stack}/snapshots", '{"name": DEEP}'),
    ("POST", "{stack}/resources/handle/signal", '{"data": DEEP}'),
    ("POST", "{stack}/resources/handle/signal", '{"unset_hook": DEEP}'),
    ("PATCH", "{stack}/resources/a", '{"mark_unhealthy": true, "resource_status_reason": DEEP}'),
]


@pytest.mark.parametrize("levels", [980, 1_000, 100_000])  # Python's own recursion ends a little below 1,000
@pytest.mark.parametrize(("verb", "place", "body"), DEEP_PLACES)
def test_deeply_nested_bodies_are_refused(stoker, stack, refused, verb, place, body, levels):
    before = stoker.heat("GET", stack).body
    small = '{"heat_template_version": "2018-08-31", "parameters": {"p": {"type": "json", "default": {}}}}'
    said = body.replace("TEMPLATE", small).replace("DEEP", nested(levels))
    refused(verb, place.format(stack=stack), said.encode())
    assert stoker.heat("GET", stack).body == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/yaml"]
)
@pytest.mark.parametrize("body", [b"stack_name=s&template=t", b"stack_name: s", b"<stack/>", b"\x1f\x8b\x08", b" "])
def test_bodies_of_other_media_types_are_refused(stoker, refused, kind, body):
    answer = stoker.heat("POST", "/stacks", body, **{"Content-Type": kind, "Content-Encoding": "gzip"})
    assert "JSON" in refused.check(answer, 400)


@pytest.mark.parametrize("odd", ["a\x00b", "\x00", "x" * 10_000])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/software_configs", {"name": "ODD"}),
        ("/software_configs", {"group": "ODD"}),
        ("/software_configs", {"inputs": [{"name": "a", "type": "ODD"}]}),
        ("/software_deployments", {"config_id": "ODD", "server_id": "s"}),
        ("/software_deployments", {"config_id": "none", "server_id": "ODD"}),
        ("/servers", {"name": "ODD"}),
        ("/stacks", {"stack_name": "ODD", "template": template()}),
        ("/stacks", {"stack_name": "s", "template": template(ODD=resource(properties={"value": 1}))}),
        ("/stacks", {"stack_name": "s", "template": template(a=resource("ODD"))}),
        ("/stacks", {"stack_name": "s", "template": {**template(), "heat_template_version": "ODD"}}),
        ("/stacks", {"stack_name": "s", "template": {**template(), "parameters": {"ODD": {"type": "string"}}}}),
        ("/stacks", {"stack_name": "s", "template": template(), "parameters": {"ODD": 1}}),
        ("/stacks", {"stack_name": "s", "template": template(), "tags": "ODD"}),
        ("/stacks", {"stack_name": "s", "template": template(), "environment_files": ["ODD"]}),
        ("/stacks", {"stack_name": "s", "template": template(), "environment": {"ODD": {}}}),
    ],
)
def test_odd_characters_in_names_are_refused(refused, path, body, odd):
    refused("POST", path, json.loads(json.dumps(body).replace("ODD", json.dumps(odd)[1:-1])))


@pytest.mark.parametrize("name", ["a\nb", "a/b", "💥", "\u202eabc\u202c", "ä", " ", "%00", "../..", "'; --", "x" * 255])
def test_odd_but_valid_names_are_returned_unchanged(stoker, name):
    """Configs are found by id, so their names may be anything that fits."""
    made = stoker.heat("POST", "/software_configs", {"name": name, "config": name}).body["software_config"]
    listed = stoker.heat("GET", "/software_configs").body["software_configs"]
    assert [each["name"] for each in listed if each["id"] == made["id"]] == [name]
    assert stoker.heat("GET", f"/software_configs/{made['id']}").body["software_config"] == made
    assert made["config"] == name
    stoker.heat("DELETE", f"/software_configs/{made['id']}")


@pytest.mark.parametrize("body", [b'{"name": "\\ud800"}', b'{"name": "\xff"}', b'{"\xc3\x28": 1}', b'{"name": "\n"}'])
@pytest.mark.parametrize("path", ["/software_configs", "/stacks", "/servers"])
def test_invalid_text_is_refused(refused, path, body):
    refused("POST", path, body)


@pytest.mark.parametrize(("verb", "below"), [("PUT", ""), ("PATCH", ""), ("PUT", "/preview"), ("PATCH", "/preview")])
@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"template": V + "resources: ["}, "line"),
        ({"template": template(a=resource(properties={"value": {"get_param": "who"}}))}, "who"),
        ({"template": 17}, "JSON object"),
        ({"template": template(), "parameters": [1]}, "parameters"),
        ({"template": template(), "files": "x"}, "files"),
        ({"template": template(), "environment": {"surprise": {}}}, "surprise"),
        ({"template": template(), "environment_files": ["gone"]}, "gone"),
        ({"template": template(), "timeout_mins": "soon"}, "timeout_mins"),
        ({"template": template(), "disable_rollback": "perhaps"}, "disable_rollback"),
        ({"template": template(), "tags": 5}, "tags"),
    ],
)
def test_invalid_changes_of_a_stack_are_refused(stoker, stack, refused, verb, below, said, named):
    before = stoker.heat("GET", stack).body
    assert named in refused(verb, stack + below, said)
    assert stoker.heat("GET", stack).body == before


@pytest.mark.parametrize(("verb", "below"), [("PUT", ""), ("PATCH", ""), ("POST", "/actions"), ("POST", "/snapshots")])
@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"5", b"\xff\xfe", b"{'a': 1}"])
def test_stack_bodies_that_are_not_objects_are_refused(stoker, stack, refused, verb, below, body):
    before = stoker.heat("GET", stack).body
    refused(verb, stack + below, body)
    assert stoker.heat("GET", stack).body == before


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "JSON"),
        (b"\xff", "JSON"),
        (b'"SUCCESS"', "object"),
        (b"[1]", "object"),
        ({"surprise": 1}, "surprise"),
        ({"status": "PERHAPS"}, "PERHAPS"),
        ({"status": ["SUCCESS"]}, "SUCCESS"),
        ({"status": {}}, "status"),
        ({"unset_hook": "pre-create"}, "pre-create"),
        ({"unset_hook": None}, "None"),
        ({"unset_hook": {"a": 1}}, "hook"),
    ],
)
def test_invalid_signals_are_refused(stoker, stack, refused, body, named):
    before = stoker.heat("GET", f"{stack}/resources/handle/metadata").body
    assert named in refused("POST", f"{stack}/resources/handle/signal", body)
    assert stoker.heat("GET", f"{stack}/resources/handle/metadata").body == before


def test_lists_are_sorted_by_optional_fields(stoker, stack):
    """Nothing compares with a time that never came, but a page may begin behind it."""
    ids = [stack.rpartition("/")[2]]
    for i in range(3):
        made = stoker.heat("POST", "/stacks", {"stack_name": f"sorted{i}", "template": template()}).body["stack"]
        ids.append(made["id"])
    assert stoker.heat("PATCH", f"/stacks/sorted1/{ids[2]}", {}).status == 202
    for direction in ("asc", "desc"):
        query = f"/stacks?sort_keys=updated_time&sort_dir={direction}"
        whole = [each["id"] for each in stoker.heat("GET", query).body["stacks"]]
        paged, marker = [], ""
        while page := stoker.heat("GET", f"{query}&limit=1{marker}").body["stacks"]:
            paged.append(page[0]["id"])
            marker = f"&marker={page[0]['id']}"
        assert paged == whole
        assert whole[-1 if direction == "asc" else 0] == ids[2]
    for i, id in enumerate(ids[1:]):
        stoker.heat("DELETE", f"/stacks/sorted{i}/{id}")


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/nowhere", "/v1/x/nowhere", "/agent/v1/nowhere", "/v2", "/v1//stacks", "/\\"])
def test_paths_of_no_api_are_404(stoker, refused, verb, path):
    refused.check(stoker.request(verb, path, {} if verb != "GET" else None), 404)


@pytest.mark.parametrize("path", ["/identity/v3/nowhere", "/identity/%00", "/identity/v3/users/%00"])
def test_unknown_paths_of_the_identity_api_are_404(stoker, path):
    answer = stoker.request("GET", path, headers={"X-Auth-Token": stoker.token})
    assert answer.status == 404
    assert answer.body["error"]["code"] == 404
    assert answer.body["error"]["title"] == "Not Found"


@pytest.mark.parametrize("verb", ["TRACE", "PATCH", "PUT", "PROPFIND", "REPORT"])
def test_unsupported_methods_of_a_path_are_405(stoker, refused, verb):
    answer = stoker.heat(verb, "/software_configs")
    assert verb in refused.check(answer, 405)
    assert answer.headers["Allow"] == "GET, POST"
    refused.check(stoker.heat(verb, "/nowhere"), 404)


@pytest.mark.parametrize("path", ["/software_configs", "/software_deployments", "/stacks"])
def test_options_lists_the_methods_of_a_path(stoker, refused, path):
    answer = stoker.heat("OPTIONS", path)
    assert (answer.status, answer.raw, answer.headers["Allow"]) == (204, b"", "GET, POST")
    refused.check(stoker.heat("OPTIONS", "/nowhere"), 404)


@pytest.mark.parametrize("verb", ["TRACE", "PROPFIND"])
def test_unknown_methods_are_refused(stoker, verb):
    keystone = stoker.request(verb, "/identity/v3/projects")
    assert (keystone.status, keystone.body["error"]["code"]) == (405, 405)
    assert keystone.headers["Allow"] == "GET, POST"
    zaqar = stoker.request(verb, "/messaging/v2/queues")
    assert (zaqar.status, zaqar.body["title"]) == (405, "Method Not Allowed")
    cfn = stoker.request(verb, "/cfn/v1")
    assert cfn.status == 405
    assert cfn.raw.startswith(b"<ErrorResponse>")
    swift = stoker.request(verb, "/object-store/v1/AUTH_x")
    assert (swift.status, swift.headers["Content-Type"]) == (405, "text/plain; charset=UTF-8")
    assert stoker.request(verb, "/agent/v1/document").status == 405


@pytest.mark.parametrize("junk", [5, "x", True, [1], [[1]], {"a": 1}, {"resources": 5}])
@pytest.mark.parametrize("key", ["adopt", "removed", "batches", "reference", "names"])
def test_adoption_of_invalid_data_is_refused_or_harmless(stoker, key, junk):
    """Whoever adopts hands in what types keep for themselves, and may have made it up."""
    definition = {"type": "OS::Heat::Value", "properties": {"value": 1}}
    group = resource("OS::Heat::ResourceGroup", properties={"count": 2, "resource_def": definition})
    data = {"resources": {"group": {"resource_id": "any", "resource_data": {key: junk}}}}
    said = {"stack_name": "adopted", "template": template(group=group), "adopt_stack_data": data}
    answer = stoker.heat("POST", "/stacks", said)
    assert answer.status == 201, answer.raw
    path = f"/stacks/adopted/{answer.body['stack']['id']}"
    shown = stoker.heat("GET", path).body["stack"]
    if shown["stack_status"] != "ADOPT_COMPLETE":
        assert key in shown["stack_status_reason"]
    for below in ("/resources?with_detail=true&nested_depth=2", "/export"):
        assert stoker.heat("GET", path + below).status == 200
    assert stoker.heat("PATCH", path, {}).status == 202
    assert stoker.heat("DELETE", path).status == 204


@pytest.mark.parametrize("name", ["preview", "detail"])
def test_a_stack_may_have_the_name_of_a_path(stoker, name):
    made = stoker.heat("POST", "/stacks", {"stack_name": name, "template": template()}).body["stack"]
    path = f"/stacks/{name}/{made['id']}"
    try:
        assert stoker.heat("GET", path).body["stack"]["id"] == made["id"]
        assert stoker.heat("GET", f"{path}/template").status == 200
        assert stoker.heat("DELETE", f"/stacks/{name}").headers["Location"].endswith(path)
        assert stoker.heat("GET", "/stacks/detail").body["stacks"]
    finally:
        assert stoker.heat("DELETE", path).status == 204
