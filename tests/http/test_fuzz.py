"""Whatever is sent, nobody gets a 5xx: every answer is a success, or an error in its face's shape."""

from __future__ import annotations

import copy
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.search import examples

pytestmark = pytest.mark.slow

#: A deployment whose transport was taken away waits for its agent.
#: A template may fail, and its body may request a rollback.
STATES = tuple(
    f"{action}_{status}" for action in ("CREATE", "ROLLBACK") for status in ("COMPLETE", "FAILED", "IN_PROGRESS")
)
WORDS = ("script", "CREATE", "COMPLETE", "String", "OS::Heat::Value", "2018-08-31", "get_param", "\0", "💥")

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(WORDS),
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)

GOOD = {
    "stack_name": "fuzz",
    "template": {
        "heat_template_version": "2018-08-31",
        "parameters": {"p": {"type": "number", "default": 1, "constraints": [{"range": {"min": 0}}]}},
        "resources": {
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {"group": "script", "config": "x", "inputs": [{"name": "i"}], "outputs": [{"name": "o"}]},
            },
            "server": {"type": "OS::Heat::DeployedServer", "properties": {"name": "fuzz"}},
            "run": {
                "type": "OS::Heat::SoftwareDeployment",
                "depends_on": ["value"],
                "properties": {
                    "config": {"get_resource": "config"},
                    "server": {"get_resource": "server"},
                    "input_values": {"i": {"str_replace": {"template": "a", "params": {"a": {"get_param": "p"}}}}},
                    "signal_transport": "NO_SIGNAL",
                },
            },
            "value": {"type": "OS::Heat::Value", "properties": {"value": {"list_join": [",", ["a", "b"]]}}},
        },
        "outputs": {"o": {"value": {"get_attr": ["run", "o"]}}},
    },
    "environment": {"parameters": {"p": 2}, "resource_registry": {"A::B": "OS::Heat::Value"}},
    "files": {"a": "text"},
    "parameters": {"p": 3},
    "timeout_mins": 5,
    "disable_rollback": True,
    "tags": "a,b",
}


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


PLACES = [path for path in places(GOOD) if path]


@st.composite
def mutated(draw):
    """The good request with some parts replaced, removed or renamed."""
    made = copy.deepcopy(GOOD)
    for path in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)):
        parent = made
        try:
            for key in path[:-1]:
                parent = parent[key]
            deed = draw(st.sampled_from(["replace", "remove", "wrap"]))
            if deed == "replace":
                parent[path[-1]] = draw(anything)
            elif deed == "remove":
                del parent[path[-1]]
            else:
                parent[path[-1]] = {draw(st.sampled_from(["get_attr", "get_file", "x", "repeat"])): parent[path[-1]]}
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    return made


bounded = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


_MINE = "/users/{me}"


def sound(answer):
    """No 5xx, and an error in the shape of Heat's or of Keystone's."""
    assert answer.status < 500, answer.raw
    if answer.status >= 400:
        assert answer.body["error"]["message"], answer.raw
        assert answer.status in (answer.body.get("code"), answer.body["error"].get("code")), answer.raw
    return answer


@bounded
@given(body=mutated())
def test_any_template_is_answered(stoker, body):
    answer = sound(stoker.heat("POST", "/stacks", body))
    if answer.status == 201:
        stack = answer.body["stack"]
        path = stack["links"][0]["href"].partition(stoker.project)[2]
        assert sound(stoker.heat("GET", path)).body["stack"]["stack_status"] in STATES
        for below in ("/resources?with_detail=true", "/events", "/template", "/environment", "/export"):
            assert sound(stoker.heat("GET", path + below)).status == 200
        assert sound(stoker.heat("DELETE", path)).status == 204


@bounded
@given(body=mutated())
def test_any_template_is_validated_and_previewed_or_refused(stoker, body):
    sound(stoker.heat("POST", "/validate?show_nested=true", body))
    sound(stoker.heat("POST", "/stacks/preview", body))


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/software_configs", ["name", "group", "config", "inputs", "outputs", "options"]),
        (
            "/software_deployments",
            [
                "config_id",
                "server_id",
                "input_values",
                "action",
                "status",
                "status_reason",
                "signal_transport",
                "timeout",
            ],
        ),
        ("/servers", ["name"]),
        (
            "/software_triggers",
            [
                *("action", "stack", "resource", "deployment_id", "config_id", "servers", "labels", "selector"),
                "input_values",
                *("name", "signal_transport", "timeout", "max_concurrent", "max_fail_percentage", "require_window"),
            ],
        ),
        (
            "/software_schedules",
            ["name", "trigger", "cron", "at", "timezone", "require_window", "misfire_policy", "enabled"],
        ),
        ("/stacks", ["stack_name", "template", "files", "environment", "environment_files", "adopt_stack_data"]),
    ],
)
@bounded
@given(data=st.data())
def test_any_request_is_answered(stoker, path, keys, data):
    body = data.draw(anything | st.dictionaries(st.sampled_from(keys), anything, max_size=6))
    answer = sound(stoker.heat("POST", path, body))
    if path == "/servers" and answer.status == 201:
        stoker.heat("DELETE", f"/servers/{answer.body['server']['id']}")


@bounded
@given(body=anything)
def test_any_login_is_answered(stoker, body):
    sound(stoker.request("POST", "/identity/v3/auth/tokens", body))
    sound(stoker.request("POST", "/identity/v3/auth/tokens", {"auth": body}))
    sound(stoker.request("POST", "/identity/v3/auth/tokens", {"auth": {"identity": body, "scope": body}}))
    sound(stoker.request("POST", "/agent/v1/enroll", body))


@bounded
@given(
    path=st.sampled_from(["/projects", "/users", "/users/x", _MINE + "/application_credentials", _MINE + "/password"]),
    verb=st.sampled_from(["POST", "PATCH"]),
    body=anything
    | st.fixed_dictionaries(
        {"user": anything, "project": anything}
        | {"application_credential": st.dictionaries(st.sampled_from(["roles", "expires_at", "secret"]), anything)}
    ),
)
def test_any_administration_request_is_answered(stoker, path, verb, body):
    headers = {"X-Auth-Token": stoker.token, "X-Subject-Token": stoker.token}
    me = stoker.request("GET", "/identity/v3/auth/tokens", headers=headers).body["token"]["user"]["id"]
    answer = stoker.request(verb, f"/identity/v3{path.format(me=me)}", body, headers)
    assert answer.status < 500, answer.raw
    if answer.status >= 400:
        assert answer.body["error"]["message"]


@bounded
@given(data=st.data())
def test_any_action_on_a_stack_is_answered(stoker, data):
    body = {"stack_name": "fuzzed", "template": GOOD["template"]}
    made = stoker.heat("POST", "/stacks", body)
    path = f"/stacks/fuzzed/{made.body['stack']['id']}" if made.status == 201 else "/stacks/fuzzed"
    keys = ["suspend", "resume", "check", "mark_unhealthy", "name", "unset_hook", "clear_parameters", "template"]
    said = data.draw(anything | st.dictionaries(st.sampled_from(keys), anything, max_size=3))
    below = data.draw(st.sampled_from(["/actions", "/snapshots", "/resources/run/signal", "/preview", ""]))
    verb = data.draw(st.sampled_from(["POST", "PUT", "PATCH"]))
    sound(stoker.heat(verb, path + below, said))
    sound(stoker.heat("PATCH", f"{path}/resources/value", said))
    if data.draw(st.booleans()):
        sound(stoker.heat("DELETE", path))


SIGNALLED = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "config": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"outputs": [{"name": "o"}, {"name": "e", "error_output": True}]},
        },
        "server": {"type": "OS::Heat::DeployedServer"},
        "run": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {"config": {"get_resource": "config"}, "server": {"get_resource": "server"}},
        },
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
    },
    "outputs": {"o": {"value": {"get_attr": ["run", "o"]}}},
}
SAID = ["o", "e", "deploy_stdout", "deploy_status_code", "deploy_status_reason", "status", "reason", "data", "id"]


@settings(bounded, max_examples=examples(25))  # each is a whole stack
@given(
    body=anything | st.dictionaries(st.sampled_from([*SAID, "unset_hook"]), anything, max_size=4),
    name=st.sampled_from(["run", "handle", "server"]),
)
def test_any_signal_is_answered(stoker, body, name):
    made = stoker.heat("POST", "/stacks", {"stack_name": "signalled", "template": SIGNALLED}).body["stack"]
    path = f"/stacks/signalled/{made['id']}"
    sound(stoker.heat("POST", f"{path}/resources/{name}/signal", body))
    for below in ("", "/resources?with_detail=true", "/resources/handle/metadata", "/events"):
        assert stoker.heat("GET", path + below).status == 200
    assert stoker.heat("GET", "/software_deployments").status == 200
    assert stoker.heat("DELETE", path).status == 204


@bounded
@given(data=st.data())
def test_any_request_of_an_agent_is_answered(stoker, agents_run, data):
    key, run = agents_run
    call = data.draw(st.sampled_from(["signal", "progress", "logs?stream=stdout&offset=0"]))
    keys = [*SAID, "state", "percent", "message"]
    body = data.draw(anything | st.dictionaries(st.sampled_from(keys), anything, max_size=4) | st.binary(max_size=40))
    headers = {"Authorization": f"Bearer {key}"}
    sound(stoker.request("POST", f"/agent/v1/runs/{run()}/{call}", body, headers))
    assert stoker.request("GET", "/agent/v1/document?wait=0", headers=headers).status == 200
    assert stoker.heat("GET", "/software_deployments").status == 200


@pytest.fixture(scope="session")
def agents_run(stoker):
    """An agent's key, and a run under way: the same one until it has ended, so that few are made."""
    made = stoker.heat("POST", "/servers", {"name": "fuzzed"}).body
    said = {"token": made["enrollment"]["token"], "instance": "i"}
    key = stoker.request("POST", "/agent/v1/enroll", said).body["key"]
    config = stoker.heat("POST", "/software_configs", {"outputs": [{"name": "o"}]}).body["software_config"]["id"]
    wanted = {"config_id": config, "server_id": made["server"]["id"], "signal_transport": "STOKER_SIGNAL"}
    current = []

    def run():
        place = f"/software_deployments/{current[0]['id']}" if current else None
        if place and stoker.heat("GET", place).body["software_deployment"]["status"] == "IN_PROGRESS":
            return current[0]["config_id"]
        if place:
            stoker.heat("DELETE", place)
        current[:] = [stoker.heat("POST", "/software_deployments", wanted).body["software_deployment"]]
        return current[0]["config_id"]

    yield key, run
    stoker.heat("DELETE", f"/software_deployments/{current[0]['id']}")
    stoker.heat("DELETE", "/servers/fuzzed")


@bounded
@given(
    path=st.sampled_from(["/stacks", "/software_configs", "/software_deployments", "/validate", "/servers"]),
    body=st.binary(max_size=60) | st.text(alphabet='[]{}",:0\\u\t\n', max_size=40).map(str.encode),
)
def test_any_bytes_are_answered(stoker, path, body):
    sound(stoker.heat("POST", path, body))


QUERIES = {
    "/stacks": [
        "limit",
        "marker",
        "sort_keys",
        "sort_dir",
        "show_nested",
        "with_count",
        "tags",
        "not_tags_any",
        "status",
    ],
    "/software_configs": ["limit", "marker", "global_tenant"],
    "/software_deployments": ["server_id"],
    "/software_triggers": ["limit", "marker", "status", "stack"],
    "/resource_types": ["name", "support_status", "with_description"],
}


@bounded
@given(data=st.data())
def test_any_query_is_answered(stoker, data):
    path = data.draw(st.sampled_from(list(QUERIES)))
    value = st.text(max_size=6) | st.sampled_from(
        ["1", "-1", "true", "stack_name", "updated_time", "\0", "²", "(", "a,b"]
    )
    said = data.draw(st.lists(st.tuples(st.sampled_from(QUERIES[path]), value), max_size=4))
    sound(stoker.heat("GET", f"{path}?{urlencode(said)}"))


@bounded
@given(segments=st.lists(st.text(min_size=1, max_size=5) | st.sampled_from(["stacks", "\0", "..", "/"]), max_size=4))
def test_any_path_is_answered(stoker, segments):
    path = "/".join(quote(each, safe="") for each in segments)
    sound(stoker.heat("GET", f"/{path}"))
    sound(stoker.heat("DELETE", f"/stacks/{path}"))
