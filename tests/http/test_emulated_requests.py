"""Requests with odd values to the identity and messaging APIs: none is answered with 5xx."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from support.search import sample
from support.server import Served, served

pytestmark = pytest.mark.slow

ODD = [5, 1.5, True, None, "", "x", "\0", "💥" * 300, 10**30, -1, [], [[1]], [None], {}, {"a": 1}, {"a": [{}]}]
ODD_WORDS = ["", "x", "-1", "0", "1.5", "9" * 30, "%ff", "%00", "%D9%A3", "%C2%B2", ",", "a,b", "null", "_"]

USER = {"name": "u", "password": "horse staple", "email": "a@example.org", "enabled": True, "default_project_id": "p"}
PASSWORD = {"user": {"name": "u", "domain": {"id": "default"}, "password": "x"}}
SCOPE = {"project": {"name": "p", "domain": {"name": "Default"}}}
METHODS = {
    "methods": ["password", "token", "application_credential"],
    "password": PASSWORD,
    "token": {"id": "t"},
    "application_credential": {"id": "i", "name": "n", "secret": "s", "user": {"name": "u", "domain": {"id": "d"}}},
}
CREDENTIAL = {"name": "c", "roles": [{"name": "member"}], "expires_at": "2100-01-01T00:00:00Z", "unrestricted": True}
SUBSCRIBER = {"subscriber": "https://93.184.216.34/", "ttl": 3600, "options": {"post_headers": {"a": "b"}}}
BODIES: list[tuple[str, str, Any]] = [
    ("POST", "/identity/v3/auth/tokens", {"auth": {"identity": METHODS, "scope": SCOPE}}),
    ("POST", "/identity/v3/auth/tokens", {"auth": {"identity": METHODS, "scope": {"system": {"all": True}}}}),
    ("POST", "/identity/v3/projects", {"project": {"name": "n", "description": "d", "enabled": True, "tags": ["a"]}}),
    ("PATCH", "/identity/v3/projects/{project}", {"project": {"description": "d"}}),
    ("POST", "/identity/v3/users", {"user": USER}),
    ("PATCH", "/identity/v3/users/{user}", {"user": {"description": "d", "email": "b@example.org"}}),
    ("POST", "/identity/v3/users/{me}/application_credentials", {"application_credential": CREDENTIAL}),
    ("PUT", "/messaging/v2/queues/odd", {"_default_message_ttl": 60, "a": {"b": 1}}),
    ("PATCH", "/messaging/v2/queues/odd", [{"op": "add", "path": "/metadata/a", "value": 1}]),
    ("POST", "/messaging/v2/queues/odd/messages", {"messages": [{"body": {"a": 1}, "ttl": 60, "delay": 1}]}),
    ("POST", "/messaging/v2/queues/odd/subscriptions", SUBSCRIBER),
    ("POST", "/messaging/v2/queues/odd/share", {"paths": ["messages"], "methods": ["GET"], "expires": "2100-01-01"}),
    ("POST", "/messaging/v2/queues/odd/purge", {"resource_types": ["messages"]}),
]
QUERIES = {
    "/identity/v3/users": ("name", "domain_id", "enabled", "limit", "marker"),
    "/identity/v3/projects": ("name", "domain_id", "enabled", "parent_id", "limit", "marker"),
    "/identity/v3/role_assignments": ("user.id", "role.id", "scope.project.id", "scope.system", "include_names"),
    "/identity/v3/roles": ("name", "domain_id"),
    "/messaging/v2/queues": ("limit", "marker", "name", "detailed", "with_count"),
    "/messaging/v2/queues/odd/messages": ("limit", "marker", "echo", "include_delayed", "ids"),
    "/messaging/v2/queues/odd/subscriptions": ("limit", "marker"),
    "/object-store/v1/AUTH_{home}": ("limit", "marker", "end_marker", "prefix", "delimiter", "format", "reverse"),
    "/object-store/v1/AUTH_{home}/odd": ("limit", "marker", "end_marker", "prefix", "delimiter", "format", "path"),
}
HEADERS = {"Client-ID": str(uuid.uuid4()), "Content-Type": "application/openstack-messaging-v2.0-json-patch"}


class Emulated:
    def __init__(self, stoker: Served) -> None:
        self.stoker = stoker
        login = stoker.login().body["token"]
        user = self.send("POST", "/identity/v3/users", {"user": {"name": "victim", "password": "horse staple"}})
        project = self.send("POST", "/identity/v3/projects", {"project": {"name": "victim"}})
        self.names = {
            "me": login["user"]["id"],
            "home": login["project"]["id"],
            "user": user.body["user"]["id"],
            "project": project.body["project"]["id"],
        }
        self.send("PUT", "/object-store/v1/AUTH_{home}/odd".format_map(self.names), b"")
        self.send("PUT", "/messaging/v2/queues/odd", {})

    def send(self, verb: str, path: str, body: Any = None):
        headers = {"X-Auth-Token": self.stoker.token, **HEADERS}
        answer = self.stoker.request(verb, path, body, headers)
        assert answer.status < 500, (verb, path, body, answer.raw[:500])
        return answer


@pytest.fixture(scope="module")
def emulated(tmp_path_factory) -> Iterator[Emulated]:
    with served(tmp_path_factory.mktemp("odd")) as stoker:
        yield Emulated(stoker)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all parts of a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from leaves(part, (*path, key))


@pytest.mark.parametrize(("verb", "path", "body"), BODIES, ids=lambda value: value if isinstance(value, str) else "")
def test_an_odd_value_in_any_member_is_no_error_of_the_server(emulated, verb, path, body):
    assert emulated.send(verb, path.format_map(emulated.names), copy.deepcopy(body)).status < 500
    for position, place in enumerate(leaves(body)):
        for odd in sample(ODD, 4, position):
            changed = copy.deepcopy(body)
            at = changed
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = odd
            emulated.send(verb, path.format_map(emulated.names), changed)
    for odd in ODD:
        emulated.send(verb, path.format_map(emulated.names), odd)


@pytest.mark.parametrize("path", QUERIES)
def test_an_odd_value_in_any_query_is_no_error_of_the_server(emulated, path):
    for name in QUERIES[path]:
        for odd in ODD_WORDS:
            emulated.send("GET", f"{path.format_map(emulated.names)}?{name}={odd}")
