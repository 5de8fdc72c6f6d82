"""Bad input gets an error that names the thing, in Heat's shape, and changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from support.templates import HANDLE, define, template

pytestmark = pytest.mark.slow

V = "heat_template_version: 2018-08-31\n"


def value(value):
    return define("OS::Heat::Value", value=value)


TEMPLATES = [
    (V + "resources: [", "line"),
    (V + "resources: {a: {type: No::Such}}", "No::Such"),
    (V + "resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: who}}}}", "who"),
    (V + "#" + "x" * 10_000_000, "limit"),
    (template({"x" * 300: value(1)}), "255"),
    (17, "JSON object"),
    (None, "No template specified"),
]
STACK_NAMES = [
    *(None, "", "1abc", "a b", "a/b", "a\nb", "a\x00b", "ä", "💥", "\u202eabc", "x" * 256, "x" * 10_000),
    *(5, ["a"], {"a": 1}),
]
#: Members of the creation of a stack.
MEMBERS = [
    ({"parameters": {"who": 1}}, "who"),
    ({"files": {"a": 1}}, "a"),
    ({"environment": "a: ["}, "nvironment"),
    ({"environment_files": ["gone"]}, "gone"),
    ({"environment_files": [["gone"]]}, "environment_files"),
    ({"timeout_mins": "soon"}, "timeout_mins"),
    ({"disable_rollback": "perhaps"}, "disable_rollback"),
    ({"tags": "x" * 81}, "tag"),
    ({"adopt_stack_data": "{"}, "adopt_stack_data"),
    ({"adopt_stack_data": {"resources": [1]}}, "adopt_stack_data"),
]
LONG_ID = "x" * 37
DEPLOYMENTS = [
    *({}, {"server_id": "s"}, {"config_id": "not-there", "server_id": "s"}, {"config_id": ["x"], "server_id": "s"}),
    {"config_id": "not-there", "server_id": LONG_ID},
]
DEPLOYMENT_CHANGES = [
    *({"config_id": "gone"}, {"status": 5}, {"input_values": [1]}, {"output_values": "x"}, {"action": {"a": 1}}),
    {"status_reason": "x" * 70_000},
]
QUERIES = [
    *("/stacks?limit=x", "/stacks?limit=-1", "/stacks?show_deleted=perhaps", "/stacks?with_count=2"),
    *("/software_configs?limit=1.5", "/software_configs?limit=99999999999999999999", "/resource_types?name=("),
    *("/stacks?name=%00", "/stacks?limit=" + "9" * 5_000, "/software_deployments?server_id=%00"),
]
NO_OBJECTS = [b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", b"NaN", b"{'a': 1}"]
SIGNALS = [
    (b"{", "JSON"),
    (b'"SUCCESS"', "object"),
    ({"surprise": 1}, "surprise"),
    ({"status": ["SUCCESS"]}, "SUCCESS"),
    ({"unset_hook": "pre-create"}, "pre-create"),
    ({"unset_hook": {"a": 1}}, "hook"),
]
#: Requests with a status.
REQUESTS = [
    ("GET", "/nowhere", None, 404),
    ("GET", "/stacks/none", None, 404),
    ("GET", "/stacks/none/nobody", None, 404),
    ("GET", "/stacks/%00/%00", None, 404),
    ("GET", "/stacks/%F0%9F%92%A5", None, 404),
    ("GET", "/stacks/" + "x" * 3_000, None, 404),
    ("DELETE", "/software_configs/none", None, 404),
    ("GET", "/software_deployments/none", None, 404),
    ("GET", "/resource_types/No::Such", None, 404),
    ("GET", "/template_versions/heat_template_version.1999-01-01/functions", None, 404),
    ("PATCH", "/stacks", None, 405),
    ("PUT", "/software_configs", None, 405),
    ("PUT", "{stack}", {}, 400),
    ("PATCH", "{stack}", {"clear_parameters": "a"}, 400),
    ("POST", "{stack}/actions", {}, 400),
    ("POST", "{stack}/actions", {"suspend": None, "check": None}, 400),
    ("POST", "{stack}/actions", {"explode": None}, 400),
    ("POST", "{stack}/actions", {"cancel_update": None}, 400),
    ("POST", "{stack}/snapshots", {"name": 5}, 400),
    ("GET", "{stack}/snapshots/none", None, 404),
    ("POST", "{stack}/snapshots/none/restore", None, 404),
    ("GET", "{stack}/outputs/none", None, 404),
    ("GET", "{stack}/resources/none", None, 404),
    ("GET", "{stack}/resources?color=red", None, 400),
    ("GET", "{stack}/resources?nested_depth=deep", None, 400),
    ("POST", "{stack}/resources/a/signal", {"x": 1}, 400),
    ("POST", "{stack}/resources/none/signal", {}, 404),
    ("POST", "{stack}/resources/a/signal", b"[]", 400),
    ("PATCH", "{stack}/resources/a", {}, 400),
    ("PATCH", "{stack}/resources/a", {"mark_unhealthy": "perhaps"}, 400),
    ("PATCH", "{stack}/resources/a", {"mark_unhealthy": True, "color": 1}, 400),
    ("GET", "{stack}/events?limit=few", None, 400),
    ("GET", "{stack}/resources/none/events", None, 404),
    ("GET", "{stack}/resources/a/events/none", None, 404),
]
STACK = '"stack_name": "s", "template": TEMPLATE'
#: What decodes JSON, or text of it: bodies, each member of a stack, and signals. DEEP is as deep as it likes.
DEEP_PLACES = [
    ("POST", "/software_configs", '{"config": DEEP}'),
    ("POST", "/stacks", '{"stack_name": DEEP}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": DEEP}'),
    ("POST", "/stacks", '{"stack_name": "s", "template": {"heat_template_version": "2018-08-31", "resources": DEEP}}'),
    ("POST", "/stacks", f'{{{STACK}, "files": {{"f": DEEP}}}}'),
    ("POST", "/stacks", f'{{{STACK}, "environment": {{"parameter_defaults": {{"a": DEEP}}}}}}'),
    ("POST", "/stacks", f'{{{STACK}, "environment": "parameter_defaults: {{a: DEEP}}"}}'),
    ("POST", "/stacks", f'{{{STACK}, "parameters": {{"p": DEEP}}}}'),
    ("POST", "/stacks", f'{{{STACK}, "parameters": {{"p": "DEEP"}}}}'),
    ("POST", "/stacks", f'{{{STACK}, "disable_rollback": DEEP}}'),
    ("POST", "/stacks", f'{{{STACK}, "adopt_stack_data": "DEEP"}}'),
    ("POST", "{stack}/resources/handle/signal", '{"data": DEEP}'),
    ("POST", "{stack}/resources/handle/signal", '{"unset_hook": DEEP}'),
]
#: Python's own recursion ends a little below 1,000.
LEVELS = (980, 1_000, 100_000)
SMALL = '{"heat_template_version": "2018-08-31", "parameters": {"p": {"type": "json", "default": {}}}}'


def deep(body, levels):
    return body.replace("TEMPLATE", SMALL).replace("DEEP", "[" * levels + "]" * levels).encode()


#: Refused with 400: verb, path, body, and a word of the error.
REFUSED = [
    *(("POST", "/stacks", {"stack_name": "s", "template": said}, named) for said, named in TEMPLATES),
    *(("POST", "/stacks", {"stack_name": name, "template": template({})}, "") for name in STACK_NAMES),
    *(("POST", "/stacks", {"stack_name": "s", "template": template({}), **more}, named) for more, named in MEMBERS),
    ("POST", "/stacks", {"stack_name": "s", "template_url": "http://127.0.0.1:1/"}, "template"),
    *(
        ("POST", path, body, "")
        for path in ("/stacks", "/software_configs", "/software_deployments", "/validate")
        for body in (*NO_OBJECTS, b"[" * 100_000, b'{"a":' * 100_000)
    ),
    ("POST", "/software_configs", b'{"config": "' + b"x" * 2_000_000 + b'"}', "limit"),
    *(("POST", "/software_deployments", body, "") for body in DEPLOYMENTS),
    *(("PUT", "{deployment}", body, "") for body in DEPLOYMENT_CHANGES),
    *(("GET", path, None, "") for path in QUERIES),
    *(
        ("GET", f"/software_deployments{path}{LONG_ID}", None, "at most 36 characters")
        for path in ("/metadata/", "?server_id=")
    ),
    *(
        (verb, path, {"template": template({}), **more}, named)
        for verb, path in (("PUT", "{stack}"), ("PUT", "{stack}/preview"))
        for more, named in [*MEMBERS, *(({"template": said}, named) for said, named in TEMPLATES)]
        if "adopt_stack_data" not in more
    ),
    *(("POST", "{stack}/resources/handle/signal", body, named) for body, named in SIGNALS),
    *((verb, path, deep(body, levels), "") for verb, path, body in DEEP_PLACES for levels in LEVELS),
    # Encoders end near a thousand levels, and what is taken goes out wrapped into more.
    *(
        ("POST", path, deep(f'{{"{member}": DEEP, {STACK}}}', 900), "nested too deeply")
        for path, member in (("/software_configs", "config"), ("/software_deployments", "x"), ("/stacks", "parameters"))
    ),
    *(
        ("POST", "/servers", {"name": "web", "proxy": url}, "proxy must be http://HOST:PORT")
        for url in ("http://u:p@proxy.example:1", "https://proxy.example", "http://p.example;id", "")
    ),
]


def message_of(answer, status=400):
    """The message of an error, which has Heat's shape."""
    assert answer.status == status, answer.raw[:400]
    body = answer.body
    assert (body["code"], body["error"]["traceback"]) == (status, None)
    assert body["title"] and body["explanation"] and body["error"]["type"]
    return body["error"]["message"]


#: What a refused request may not change: the tables of everything that requests make.
TABLES = (
    *("stacks", "resources", "snapshots", "steps", "edges", "configs", "deployments", "runs", "servers", "enrollments"),
    *("triggers", "trigger_targets", "schedules"),
)


@pytest.fixture
def unchanged(stoker):
    """Whatever is refused leaves everything as it was."""
    with closing(sqlite3.connect(f"file:{stoker.state_dir / 'stoker.db'}?mode=ro", uri=True)) as database:

        def everything():
            return {table: database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}

        before = everything()
        yield
        assert everything() == before
    assert stoker.request("GET", "/healthz").status == 200


@pytest.fixture(scope="module")
def places(stoker):
    stack = stoker.create_stack("there", template({"a": value(1), "handle": HANDLE}))
    config_id = stoker.create("software_configs")["id"]
    deployment = (
        f"/software_deployments/{stoker.create('software_deployments', config_id=config_id, server_id='s')['id']}"
    )
    yield {"stack": stack, "deployment": deployment}
    for path in (stack, deployment, f"/software_configs/{config_id}"):
        stoker.heat("DELETE", path)


@pytest.mark.parametrize(
    ("verb", "path", "body", "named"),
    REFUSED,
    ids=[f"{number}-{row[0]}-{row[1]}" for number, row in enumerate(REFUSED)],
)
def test_bad_input_is_refused_by_its_name(stoker, places, unchanged, verb, path, body, named):
    assert named in message_of(stoker.heat(verb, path.format(**places), body))


@pytest.mark.parametrize(("verb", "path", "body", "status"), REQUESTS)
def test_impossible_requests_are_refused(stoker, places, unchanged, verb, path, body, status):
    message_of(stoker.heat(verb, path.format(**places), body), status)


def test_unknown_queries_are_ignored(stoker):
    for query in ("marker=nothing", "sort_keys=color", "sort_dir=sideways", "tags=,,", "status=A_B_C"):
        assert stoker.heat("GET", f"/stacks?{query}").status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/yaml"]
)
@pytest.mark.parametrize("body", [b"stack_name=s&template=t", b"stack_name: s", b"<stack/>", b"\x1f\x8b\x08", b" "])
def test_bodies_of_other_media_types_are_refused(stoker, unchanged, kind, body):
    answer = stoker.heat("POST", "/stacks", body, **{"Content-Type": kind, "Content-Encoding": "gzip"})
    assert "JSON" in message_of(answer)


@pytest.mark.parametrize("name", ["a\nb", "a/b", "💥", "\u202eabc\u202c", "ä", " ", "%00", "../..", "'; --", "x" * 255])
def test_odd_but_valid_names_are_returned_unchanged(stoker, name):
    """Configs are found by id, so their names may be anything that fits."""
    made = stoker.heat("POST", "/software_configs", {"name": name, "config": name}).body["software_config"]
    listed = stoker.heat("GET", "/software_configs").body["software_configs"]
    assert [each["name"] for each in listed if each["id"] == made["id"]] == [name]
    assert stoker.heat("GET", f"/software_configs/{made['id']}").body["software_config"] == made
    assert made["config"] == name
    stoker.heat("DELETE", f"/software_configs/{made['id']}")


def test_lists_are_sorted_by_optional_fields(stoker, places):
    """Nothing compares with a time that never came, but a page may begin behind it."""
    stacks = [stoker.create_stack(f"sorted{i}", template({})) for i in range(3)]
    assert stoker.heat("PATCH", stacks[1], {}).status == 202
    for direction in ("asc", "desc"):
        query = f"/stacks?sort_keys=updated_time&sort_dir={direction}"
        whole = [each["id"] for each in stoker.heat("GET", query).body["stacks"]]
        paged, marker = [], ""
        while page := stoker.heat("GET", f"{query}&limit=1{marker}").body["stacks"]:
            paged.append(page[0]["id"])
            marker = f"&marker={page[0]['id']}"
        assert paged == whole
        assert stacks[1].endswith(whole[-1 if direction == "asc" else 0])
    for path in stacks:
        stoker.heat("DELETE", path)


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/nowhere", "/v1/x/nowhere", "/agent/v1/nowhere", "/v2", "/v1//stacks", "/\\"])
def test_paths_of_no_api_are_404(stoker, verb, path):
    message_of(stoker.request(verb, path, {} if verb != "GET" else None), 404)


@pytest.mark.parametrize("path", ["/identity/v3/nowhere", "/identity/%00", "/identity/v3/users/%00"])
def test_unknown_paths_of_the_identity_api_are_404(stoker, path):
    answer = stoker.request("GET", path, headers={"X-Auth-Token": stoker.token})
    assert (answer.status, answer.body["error"]["code"], answer.body["error"]["title"]) == (404, 404, "Not Found")


@pytest.mark.parametrize("verb", ["TRACE", "PATCH", "PUT", "PROPFIND", "REPORT", "OPTIONS"])
def test_the_methods_of_a_path_are_listed(stoker, verb):
    for path in ("/software_configs", "/software_deployments", "/stacks"):
        answer = stoker.heat(verb, path)
        assert answer.headers["Allow"] == "GET, POST"
        if verb == "OPTIONS":
            assert (answer.status, answer.raw) == (204, b"")
        else:
            assert verb in message_of(answer, 405)
    message_of(stoker.heat(verb, "/nowhere"), 404)


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
    group = define("OS::Heat::ResourceGroup", count=2, resource_def=value(1))
    data = {"resources": {"group": {"resource_id": "any", "resource_data": {key: junk}}}}
    path = stoker.create_stack("adopted", template({"group": group}), adopt_stack_data=data)
    shown = stoker.stack(path)
    if shown["stack_status"] != "ADOPT_COMPLETE":
        assert key in shown["stack_status_reason"]
    for below in ("/resources?with_detail=true&nested_depth=2", "/export"):
        assert stoker.heat("GET", path + below).status == 200
    assert stoker.heat("PATCH", path, {}).status == 202
    assert stoker.heat("DELETE", path).status == 204


@pytest.mark.parametrize("name", ["preview", "detail"])
def test_a_stack_may_have_the_name_of_a_path(stoker, name):
    path = stoker.create_stack(name, template({}))
    try:
        assert path.endswith(stoker.stack(path)["id"])
        assert stoker.heat("GET", f"{path}/template").status == 200
        assert stoker.heat("DELETE", f"/stacks/{name}").headers["Location"].endswith(path)
        assert stoker.heat("GET", "/stacks/detail").body["stacks"]
    finally:
        assert stoker.heat("DELETE", path).status == 204
