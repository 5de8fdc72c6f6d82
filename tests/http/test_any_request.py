"""
Any request to any route of any API: none is answered with 5xx, an error has its API's shape, and whatever has a
description answers as /openapi.json says.
"""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.http.access import SITE_ADMIN
from stoker.http.api import Route
from stoker.http.apis import DESCRIBED, list_apis
from stoker.http.cfn.actions import ACTIONS
from stoker.http.openapi import path_of
from stoker.settings import Settings
from support import raw
from support.accounts import create_account, create_project
from support.databases import KINDS
from support.described_api import Described
from support.openapi import openapi_document
from support.project_contents import CLIENT_ID, Contents, fill_project
from support.search import examples, sample
from support.server import Answer, Served, served_on
from support.templates import define, deployment, template

pytestmark = pytest.mark.slow

DOCUMENT = openapi_document()
COMPONENTS = DOCUMENT["components"]["schemas"]
#: What a test sends that it cannot take back: the site's administrator logs in with it.
_SPARED = {("DELETE", "/identity/v3/auth/tokens")}
ROUTES = [route for api in list_apis(Settings()) for route in api.routes if (route.verb, route.path) not in _SPARED]


def api_of(route: Route) -> str:
    """Return the first segment of the path."""
    return route.path.split("/")[1]


APIS = ("agent", "cfn", "identity", "messaging", "object-store", "relay", "v1")

# Requests as they should be

TEMPLATE = template(
    {
        "config": define(
            "OS::Heat::SoftwareConfig", group="script", config="x", inputs=[{"name": "i"}], outputs=[{"name": "o"}]
        ),
        "server": define("OS::Heat::DeployedServer", name="any") | {"metadata": {"a": 1}},
        "run": (
            deployment(
                input_values={"i": {"str_replace": {"template": "a", "params": {"a": {"get_param": "p"}}}}},
                signal_transport="NO_SIGNAL",
            )
            | {"depends_on": ["value"]}
        ),
        "value": (
            define("OS::Heat::Value", value={"list_join": [",", ["a", "b"]]})
            | {"deletion_policy": "Delete", "condition": "c"}
        ),
    },
    parameter_groups=[{"label": "l", "description": "d", "parameters": ["p"]}],
    parameters={
        "p": {"type": "number", "default": 1, "label": "l", "tags": ["a"], "constraints": [{"range": {"min": 0}}]},
        "s": {"type": "string", "default": "x", "hidden": True, "constraints": [{"length": {"max": 9}}]},
    },
    conditions={"c": True},
    outputs={"o": {"description": "d", "condition": "c", "value": {"get_attr": ["run", "o"]}}},
)
STACK = {
    "template": TEMPLATE,
    "environment": {"parameters": {"p": 2}, "resource_registry": {"A::B": "OS::Heat::Value"}},
    "files": {"a": "text"},
    "parameters": {"p": 3},
    "timeout_mins": 5,
    "disable_rollback": True,
    "tags": "a,b",
}
RESULT = {"o": "x", "deploy_stdout": "x", "deploy_status_code": 0, "deploy_status_reason": "r", "status": "COMPLETE"}
SIGNAL = {"status": "SUCCESS", "reason": "r", "data": {"a": 1}, "id": "1"}
PASSWORD = {"user": {"name": "u", "domain": {"id": "default"}, "password": "x"}}
METHODS = {
    "methods": ["password", "token", "application_credential"],
    "password": PASSWORD,
    "token": {"id": "t"},
    "application_credential": {"id": "i", "name": "n", "secret": "s", "user": {"name": "u", "domain": {"id": "d"}}},
}
CREDENTIAL = {"name": "c", "roles": [{"name": "member"}], "expires_at": "2100-01-01T00:00:00Z", "unrestricted": True}
SUBSCRIBER = {"subscriber": "https://93.184.216.34/", "ttl": 3600, "options": {"post_headers": {"a": "b"}}}
USER = {"name": "u", "password": "horse staple", "email": "a@example.org", "enabled": True, "default_project_id": "p"}
#: The text in the braces stands for the name of an object of the project.
TRIGGER = {"config_id": "{config_id}", "servers": ["{server}"], "name": "t", "canary": 1, "max_concurrent": 2}
SCHEDULE = {"name": "s", "trigger": {"config_id": "{config_id}", "servers": ["{server}"]}, "cron": "0 2 1 1 *"}
ENTRY = """\
stoker_catalog_version: 1
name: any
version: 1
description: d
group: script
config: x
inputs: [{name: i, description: d}]
"""
_STACK = "/v1/{project}/stacks/{stack_name}/{stack_id}"
_QUEUE = "/messaging/v2/queues/{queue}"
#: Where the schema says less than there is to get wrong, and where there is none.
BODIES: Mapping[tuple[str, str], list[Any]] = {
    ("POST", "/v1/{project}/stacks"): [{"stack_name": "any", **STACK}],
    ("PATCH", _STACK): [STACK],
    ("PUT", _STACK): [STACK],
    ("PUT", f"{_STACK}/preview"): [STACK],
    ("POST", "/v1/{project}/stacks/preview"): [{"stack_name": "any", **STACK}],
    ("POST", "/v1/{project}/stacks/server_previews"): [{"stack_name": "any", **STACK}],
    ("POST", "/v1/{project}/validate"): [{"template": TEMPLATE, "environment": {"parameters": {"p": 2}}}],
    ("POST", "/v1/{project}/software_triggers"): [TRIGGER],
    ("POST", "/v1/{project}/software_schedules"): [SCHEDULE],
    ("POST", "/v1/{project}/checks"): [{"servers": ["{server}"]}],
    ("POST", "/v1/{project}/hooks"): [{"name": "any", "content": "IyEvYmluL3NoCg=="}],
    ("POST", "/v1/{project}/catalog"): [{"text": ENTRY}],
    ("POST", "/v1/{project}/relays"): [{"name": "any", "url": "http://relay.example:8005"}],
    ("POST", f"{_STACK}/actions"): [{"suspend": None}, {"resume": None}, {"check": None}, {"cancel_update": None}],
    ("POST", f"{_STACK}/resources/{{resource_name}}/signal"): [SIGNAL, RESULT, {"unset_hook": "pre-create"}],
    ("POST", "/v1/{project}/software_deployments/{deployment_id}/signal"): [RESULT],
    ("POST", "/agent/v1/runs/{config_id}/signal"): [RESULT],
    ("POST", "/agent/v1/runs/{config_id}/logs"): [b"text"],
    ("POST", "/identity/v3/auth/tokens"): [
        {"auth": {"identity": METHODS, "scope": {"project": {"name": "p", "domain": {"name": "Default"}}}}},
        {"auth": {"identity": METHODS, "scope": {"system": {"all": True}}}},
    ],
    ("POST", "/identity/v3/projects"): [{"project": {"name": "n", "description": "d", "enabled": True, "tags": ["a"]}}],
    ("PATCH", "/identity/v3/projects/{project_id}"): [{"project": {"description": "d"}}],
    ("POST", "/identity/v3/users"): [{"user": USER}],
    ("PATCH", "/identity/v3/users/{user_id}"): [{"user": {"description": "d", "email": "b@example.org"}}],
    ("POST", "/identity/v3/users/{user_id}/password"): [{"user": {"password": "x" * 20, "original_password": "y"}}],
    ("POST", "/identity/v3/users/{user_id}/application_credentials"): [{"application_credential": CREDENTIAL}],
    ("PUT", _QUEUE): [{"_default_message_ttl": 60, "_max_messages_post_size": 1000, "a": {"b": 1}}],
    ("PATCH", _QUEUE): [[{"op": "add", "path": "/metadata/a", "value": 1}]],
    ("POST", f"{_QUEUE}/messages"): [{"messages": [{"body": {"a": 1}, "ttl": 60, "delay": 1}]}],
    ("POST", f"{_QUEUE}/subscriptions"): [SUBSCRIBER],
    ("PATCH", f"{_QUEUE}/subscriptions/{{subscription_id}}"): [SUBSCRIBER],
    ("PUT", f"{_QUEUE}/subscriptions/{{subscription_id}}/confirm"): [{"confirmed": True}],
    ("POST", f"{_QUEUE}/share"): [{"paths": ["messages"], "methods": ["GET"], "expires": "2100-01-01T00:00:00"}],
    ("POST", f"{_QUEUE}/purge"): [{"resource_types": ["messages"]}],
    ("POST", "/cfn/v1/signal/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"): [SIGNAL],
    ("PUT", "/cfn/v1/waitcondition/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"): [SIGNAL],
}
#: Bodies without a mistake that are refused, because this search cannot have what they need: tokens that are used
#: once, passwords, and a run that has failed.
REFUSED = (
    ("POST", "/agent/v1/enroll"),
    ("POST", "/identity/v3/auth/tokens"),
    ("POST", "/identity/v3/users/{user_id}/password"),
    ("POST", "/identity/v3/users/{user_id}/application_credentials"),
    ("POST", "/v1/{project}/software_deployments/{deployment_id}/retry"),
    ("POST", "/v1/{project}/software_triggers/{trigger_id}/retry"),
)
#: Requests without a body whose object has another state in this search: they succeed in ``test_openapi_answers``.
UNREADY = (
    ("DELETE", "/v1/{project}/software_configs/{config_id}"),
    ("DELETE", "/v1/{project}/software_triggers/{trigger_id}"),
    ("POST", "/v1/{project}/checks/{deployment_id}/repair"),
    ("POST", "/v1/{project}/servers/{server}/approve"),
    ("POST", "/v1/{project}/servers/{server}/reject"),
)
#: What a query must have.
QUERY: Mapping[str, Mapping[str, str]] = {
    "/agent/v1/runs/{config_id}/logs": {"stream": "stdout", "offset": "0"},
    "/v1/{project}/events": {"subject": "stacks"},
}
#: The queries of the APIs without a description.
QUERIES = {
    "cfn": (
        *("Action", "StackName", "LogicalResourceId", "PhysicalResourceId", "ContentType", "NextToken", "Version"),
        *("AWSAccessKeyId", "Signature", "SignatureVersion", "SignatureMethod", "Timestamp"),
        *("X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires"),
    ),
    "identity": (
        *("name", "domain_id", "enabled", "limit", "marker", "parent_id", "user.id", "role.id"),
        *("scope.project.id", "scope.system", "include_names"),
    ),
    "messaging": ("limit", "marker", "name", "detailed", "with_count", "echo", "include_delayed", "ids", "pop"),
    "object-store": (
        *("limit", "marker", "end_marker", "prefix", "delimiter", "format", "reverse", "path", "multipart-manifest"),
        *("temp_url_sig", "temp_url_expires", "temp_url_prefix", "temp_url_ip_range", "filename", "inline"),
    ),
}


def schema_of(route: Route) -> Mapping[str, Any] | None:
    """Return the schema of the body, or None."""
    if route not in DESCRIBED:
        return None
    body = DOCUMENT["paths"][path_of(route)][route.verb.lower()].get("requestBody")
    content = body and next(iter(body["content"].items()))
    return content[1]["schema"] if content and "json" in content[0] else None


def query_of(route: Route) -> tuple[str, ...]:
    """Return the names of the query's parameters."""
    if route not in DESCRIBED:
        return QUERIES.get(api_of(route), ())
    parts = DOCUMENT["paths"][path_of(route)][route.verb.lower()].get("parameters", ())
    return tuple(part["name"] for part in parts if part["in"] == "query")


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return COMPONENTS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def fields(schema: Mapping[str, Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the names in a body that mean something, with those above them."""
    schema = resolve(schema)
    for choice in schema.get("anyOf", ()):
        yield from fields(choice, path)
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name)
        if len(path) < 3:
            yield from fields(inner, (*path, name))


def good(schema: Mapping[str, Any]) -> Any:
    """Return a value of a schema, with all that it requires."""
    schema = resolve(schema)
    if "anyOf" in schema and "type" not in schema:
        return good(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            return {name: good(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [good(schema["items"])]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return "a"


def parts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all parts of a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from parts_of(part, (*path, key))


def bodies_of(route: Route) -> list[tuple[Any, list[tuple[Any, ...]]]]:
    """Return good bodies with the places in them, which may be absent."""
    schema = schema_of(route)
    bodies = BODIES.get((route.verb, route.path)) or ([good(schema)] if schema else [])
    return [(body, list(dict.fromkeys([*parts_of(body), *(fields(schema) if schema else ())]))) for body in bodies]


def fill_in(body: Any, names: Mapping[str, str]) -> Any:
    """Return a copy of the body with the names of the project's objects in it."""
    if isinstance(body, dict):
        return {
            key: fill_in(names[key] if value == "a" and key in names else value, names) for key, value in body.items()
        }
    if isinstance(body, list):
        return [fill_in(value, names) for value in body]
    return names.get(body[1:-1], body) if isinstance(body, str) and body.startswith("{") else body


def replace_part(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of the body with another value at the path, if there is room for it."""
    changed = at = copy.deepcopy(body)
    try:
        for key in path[:-1]:
            if isinstance(at, dict) and not isinstance(at.get(key), dict | list):
                at[key] = {}
            at = at[key]
        at[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        pass  # an earlier change has removed the place
    return changed


# Requests as they should not be

ODD = [
    *(5, 1.5, True, None, "", "x", "\0", "💥" * 300, 10**30, -1, [], [[1]], [{}], [None], ["x"]),
    *({}, {"a": 1}, {"a": [{}]}),
]
ODD_NAMES = [
    *("x", "%ff", "%ed%a0%80", "%00", "..", "%2e%2e", "a%2Fb", "%E2%80%AE", "%20", "'", "%25", "%", "%zz", ";"),
    *("AUTH_x", "-1", "9" * 20, "detail", "preview", "x" * 300, "%F0%9F%92%A5"),
    "arn%3Aopenstack%3Aheat%3A%3Ax%3Astacks",
]
ODD_WORDS = [
    *("", "x", "-1", "0", "1", "1.5", "true", "TRUE", "2147483648", "9" * 30, "9" * 5000, "٣", "²", "(", "[", "{", ","),
    *("a,b", "💥", "null", "desc", "stack_name", "updated_time", "IN_PROGRESS", "CREATE_", "_", "JSON", "json", "xml"),
    *("arn:", "arn:openstack:heat::::", "2030-01-01T00:00:00Z", "/", "1e9", "sha256:AAAA"),
]
ODD_HEADERS = [
    *("Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Accept", "Cookie"),
    *("Content-Type", "Content-Encoding", "Content-Disposition", "Etag", "Host", "Authorization", "X-Subject-Token"),
    *("X-Project-ID", "Client-ID", "URL-Signature", "URL-Expires", "URL-Methods", "URL-Paths"),
    *("X-Delete-At", "X-Copy-From", "X-Object-Meta-a", "X-Container-Read", "X-Versions-Enabled", "X-Object-Manifest"),
    *("X-Timestamp", "X-Account-Meta-Temp-URL-Key", "X-Container-Meta-Quota-Bytes", "X-Newest"),
    "X-Detect-Content-Type",
    *("X-Container-Meta-A", "X-Remove-Container-Meta-A"),
]
ODD_VALUES = [
    *("", "x", "-1", "*", "nan", "1e400", "9" * 20, "é", "true", "/a/b", "x" * 5000, ".r:*", "Bearer x", '"a"', "gzip"),
    *("bytes=0-1", "bytes=-1", "bytes=5-1", "bytes=0-0,2-3", "bytes=", "Mon, 01 Jan 2024 00:00:00 GMT", CLIENT_ID),
    *("application/x-www-form-urlencoded", "text/plain;charset=utf-16", "9999-99-99T99:99:99Z", "json;q=x"),
    *("application/json", "0001-01-01T00:00:00", "10000-01-01T00:00:00Z", "Thu, 99 Jan 99999 00:00:00 +9999"),
    "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, Signature=x",
    "text/*;q=nan, application/json;q=0.1",
]
RAW = [
    *(b"", b"{}", b"[]", b"null", b"5", b'"x"', b"{", b'{"a":1}', b"a=b&c=%ff", b"/a/b\n%ff\n", b"\xff\xfe", b"NaN"),
    *(b'{"name":"\\u0000"}', b'{"name":"\\ud800"}', b'{"a": "\n"}', b'{"messages":[{"body":1,"ttl":1e400}]}'),
]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["script", "CREATE", "COMPLETE", "String", "OS::Heat::Value", "get_param", "\0", "💥", *ODD]),
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
raw_bodies = st.binary(max_size=40) | st.text('[]{}",:0\\u\t\n', max_size=40).map(str.encode) | st.sampled_from(RAW)


@st.composite
def bodies(draw: st.DrawFn, route: Route) -> Any:
    """A good body with up to three parts replaced, removed or wrapped; or anything else."""
    known = bodies_of(route)
    if not known or draw(st.integers(0, 5)) == 0:
        return draw(raw_bodies | anything)
    body, places = draw(st.sampled_from(known))
    for path in draw(st.lists(st.sampled_from(places), max_size=3)) if places else ():
        match draw(st.sampled_from(["replace", "replace", "wrap", "nest"])):
            case "replace":
                body = replace_part(body, path, draw(anything))
            case "wrap":
                body = replace_part(body, path, {draw(st.sampled_from(["get_attr", "get_file", "x", "repeat"])): "x"})
            case "nest":
                body = replace_part(body, path, [body])
    return body


# The search


class Site:
    """A server with a project that has one of everything, renewed when a request has deleted something of it."""

    def __init__(self, stoker: Served) -> None:
        self.stoker = stoker
        self.described = Described(stoker)
        self._contents: Contents | None = None
        relay = stoker.heat("POST", "/relays", {"name": "search", "url": "http://relay.example:8005"})
        self._relay_key = relay.body["relay"]["key"]

    @property
    def contents(self) -> Contents:
        if self._contents is None:
            owner = create_account(self.stoker, "member", "reader", project=create_project(self.stoker))
            self._contents = fill_project(owner)
        return self._contents

    def path(self, route: Route, names: Mapping[str, str] | None = None) -> str:
        """Return the route's path with these names instead of those of the contents."""
        takes_signals = route.path.endswith("/signal") or api_of(route) == "cfn"
        chosen = {**self.contents.names, **({"resource_name": "handle"} if takes_signals else {}), **(names or {})}
        return re.sub(r"{(\w+)\*?}", lambda name: chosen[name[1]], route.path)

    def ask(
        self,
        route: Route,
        body: Any = None,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request, and check the answer and what can be read afterwards."""
        path = self.path(route, names)
        query = {**QUERY.get(route.path, {}), **(query or {}), **({"wait": "0"} if "wait" in query_of(route) else {})}
        if query:
            path += "?" + urlencode(query, errors="surrogatepass")
        body = fill_in(body, self.contents.names)
        if body is None and route.verb in ("POST", "PUT", "PATCH"):
            body = b""
        answer = self._send(route, path, body, headers or {})
        place = f"{route.verb} {path} {str(body)[:2000]} {headers}: {answer.status} {answer.raw[:600]!r}"
        assert answer.status < 500, f"{place}\n{self.stoker.output[-3000:]}"
        if not headers:
            self._check(route, path, answer, place)
        if route.verb != "GET" and (answer.status < 300 or answer.status in (401, 404)):
            self._read_back(route, answer)
        return answer

    def _send(self, route: Route, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        data = None if route.verb in ("GET", "HEAD") else body
        data = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
        sent = {**self._credentials(route), **headers}
        if data is not None and "Content-Type" not in sent:
            patch = route.path == _QUEUE and route.verb == "PATCH"
            sent["Content-Type"] = f"application/{'openstack-messaging-v2.0-json-patch' if patch else 'json'}"
        return raw.request(self.stoker, route.verb, path, data, sent)

    def _credentials(self, route: Route) -> dict[str, str]:
        owner = self.contents.owner
        schemes = {credential.scheme for credential in route.access.credentials}
        if "agentKey" in schemes:
            return {"Authorization": f"Bearer {self.contents.agent_key}"}
        if "relayKey" in schemes:
            return {"Authorization": f"Bearer {self._relay_key}"}
        is_of_site = api_of(route) == "identity" or route.access.allow is SITE_ADMIN.allow
        token = self.stoker.token if is_of_site else owner.token
        return {"X-Auth-Token": token, "X-Subject-Token": owner.token, "Client-ID": CLIENT_ID}

    def _check(self, route: Route, path: str, answer: Answer, place: str) -> None:
        """Compare the answer with the description, or an error with the format of its API."""
        if answer.status == 414:
            return  # of the connection, before there is a route
        if self.described.is_known(route.verb, path):
            self.described.check(route.verb, path, answer)
        elif answer.status >= 400 and answer.raw:
            match api_of(route):
                case "identity":
                    assert answer.body["error"]["code"] == answer.status, place
                    assert answer.body["error"]["message"], place
                case "messaging":
                    assert set(answer.body) == {"title", "description"}, place
                    assert answer.body["description"], place
                case "cfn" if answer.headers.get_content_type() != "application/json":
                    assert ET.fromstring(answer.raw).tag == "ErrorResponse", place

    def _read_back(self, route: Route, answer: Answer) -> None:
        """Whatever was stored can be shown. What was deleted is created again by the next request."""
        owner, names = self.contents.owner, self.contents.names
        if (route.verb, route.path) == ("POST", "/v1/{project}/stacks") and answer.status == 201:
            stack = answer.body["stack"]["links"][0]["href"].partition(owner.project)[2]
        else:
            stack = "/stacks/{stack_name}/{stack_id}".format_map(names)
        reads = ["/software_deployments", f"/servers/{names['server']}", stack]
        if "stack" in route.path:
            below = ("resources?with_detail=true", "events", "template", "environment", "outputs", "export")
            reads += [f"{stack}/{part}" for part in below]
        answers = {read: owner.heat("GET", read) for read in reads}
        for read, shown in answers.items():
            self.described.check("GET", f"/v1/{owner.project}{read}", shown)
        if answer.status == 201 and "links" in str(answer.raw) and stack.startswith("/stacks/any"):
            assert owner.heat("DELETE", stack).status == 204
        if any(answer.status in (401, 404) for answer in answers.values()) or route.verb == "DELETE":
            self._contents = None


@pytest.fixture(scope="module", params=KINDS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served_on(request, tmp_path_factory.mktemp("any")) as stoker:
        yield Site(stoker)
        stoker.until(lambda: stoker.request("GET", "/healthz").status == 200)
        assert "Traceback" not in stoker.output


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=examples(60), database=None)
@given(data=st.data())
def test_any_request_is_answered(site: Site, api: str, data: st.DataObject) -> None:
    route = data.draw(st.sampled_from([route for route in ROUTES if api_of(route) == api]))
    names = re.findall(r"{(\w+)", route.path)
    odd = st.sampled_from(ODD_NAMES) | st.text(min_size=1, max_size=5).map(
        lambda text: quote(text, safe="", errors="replace")
    )
    words = st.sampled_from([*ODD_WORDS, *(ACTIONS if api == "cfn" else ())]) | st.text(max_size=6)
    site.ask(
        route,
        data.draw(bodies(route)),
        names=data.draw(st.none() | st.fixed_dictionaries({}, optional=dict.fromkeys(names, odd))),
        query=data.draw(st.none() | st.dictionaries(st.sampled_from([*query_of(route), "x"]), words, max_size=3)),
        headers=data.draw(
            st.none() | st.dictionaries(st.sampled_from(ODD_HEADERS), st.sampled_from(ODD_VALUES), max_size=2)
        ),
    )


def each_kind(routes: list[Route]) -> list[Any]:
    """Return the routes with the kinds of database in turns."""
    kinds = [KINDS[position % len(KINDS)] for position in range(len(routes))]
    return [
        pytest.param(kind, route, id=f"{route.verb} {route.path} {kind}")
        for kind, route in zip(kinds, routes, strict=True)
    ]


def places_of(route: Route) -> Iterator[tuple[Any, Any]]:
    """Yield a good body with the path of each part, and with the name of each parameter of the query."""
    known = bodies_of(route)
    for body, places in known:
        yield from ((body, place) for place in places)
    yield from ((known[0][0] if known else None, name) for name in query_of(route))


def ask_at(site: Site, route: Route, body: Any, place: Any, value: Any) -> Answer:
    """Send a good request with another value in one place."""
    if isinstance(place, str):
        return site.ask(route, body, query={place: str(value)})
    return site.ask(route, replace_part(body, place, copy.deepcopy(value)))


@pytest.mark.parametrize(("site", "route"), each_kind(ROUTES), indirect=["site"])
def test_every_route_succeeds_and_an_odd_value_in_any_place_is_refused_or_answered(site: Site, route: Route) -> None:
    """First as it should be, then with an odd value in one field or parameter at a time."""
    bodies, first = bodies_of(route), ROUTES.index(route)
    statuses = [site.ask(route, body).status for body, _ in bodies or [(None, ())]]
    if (route.verb, route.path) not in (*REFUSED, *UNREADY):
        if route in DESCRIBED:
            assert statuses[0] < 400
        elif bodies:  # 409: another search has created it before
            assert any(status < 300 or status == 409 for status in statuses)
    for position, (body, place) in enumerate(places_of(route), first):
        for value in sample(ODD_WORDS if isinstance(place, str) else ODD, 6, position):
            ask_at(site, route, body, place, value)
    for value in sample([*ODD, *RAW], 6, first) if bodies else ():
        site.ask(route, value)


#: At and beyond the limits of columns, of the API and of JSON.
LIMITS = [
    *("", "x" * 64, "x" * 65, "x" * 255, "x" * 256, "é" * 255, "💥" * 255, "x" * 1025, "x" * 70_000),
    *("nul \0", "\ufffd", "\u202e", "\x85", "-1", "9" * 30),
    *(-1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 1.5, 1e308),
    *(None, True, [], {}, [None], {"a": "nul \0"}, ["x" * 256] * 2, {"x" * 256: "x"}),
]
#: These answers depend on the time, or on the site.
UNSTABLE = ("/healthz", "/metrics", "/v1/{project}/status")


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    sqlite, postgresql = (tmp_path_factory.mktemp(kind) for kind in KINDS)
    with served_on(request, sqlite, kind="sqlite") as one, served_on(request, postgresql, kind="postgresql") as other:
        yield [Site(one), Site(other)]


@pytest.mark.parametrize(
    "route",
    sample([route for route in DESCRIBED if (bodies_of(route) or query_of(route)) and route.path not in UNSTABLE], 4),
    ids=lambda route: f"{route.verb} {route.path}",
)
def test_values_at_their_limits_have_the_same_answer_on_both_databases(both: list[Site], route: Route) -> None:
    """SQLite stores what PostgreSQL refuses, so only a check before both makes them equal."""
    for position, (body, place) in enumerate(places_of(route)):
        for value in sample(LIMITS, 14, position):
            answers = [ask_at(site, route, body, place, value) for site in both]
            shapes = [(answer.status, members(answer)) for answer in answers]
            assert shapes[0] == shapes[1], (place, str(value)[:80], [answer.raw for answer in answers])


def members(answer: Answer) -> Any:
    """Return the members of an answer, without its values; what is inside depends on other requests."""
    is_object = "json" in answer.headers.get("Content-Type", "") and isinstance(answer.body, dict)
    return set(answer.body) if is_object else None
