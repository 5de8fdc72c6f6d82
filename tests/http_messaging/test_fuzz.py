"""Whatever is sent, nobody gets a 5xx: every answer is a success, or an error in Zaqar's shape."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from http_messaging.conftest import PATCH_TYPE
from support.search import examples

WORDS = ("messages", "subscriptions", "GET", "2099-01-01T00:00:00", "http://127.0.0.1:9/", "\0", "💥", "true")
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.integers(0, 2000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(WORDS),
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
METADATA = (
    "_max_messages_post_size",
    "_default_message_ttl",
    "_default_message_delay",
    "_enable_encrypt_messages",
    "x",
)
names = st.sampled_from(METADATA)


def some(*keys, values=anything):
    return st.dictionaries(st.sampled_from(keys), values, max_size=len(keys))


metadata = st.dictionaries(names, leaves, max_size=4)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "x"]), "path": names.map("/metadata/{}".format) | anything},
    optional={"value": leaves},
)
options = st.fixed_dictionaries({}, optional={"post_data": anything, "post_headers": anything})
BODIES = {
    ("PUT", ""): metadata,
    ("PATCH", ""): st.lists(operations, max_size=3),
    ("POST", "/messages"): st.fixed_dictionaries(
        {"messages": st.lists(some("body", "ttl", "delay", values=leaves) | anything, max_size=22)}
    ),
    ("POST", "/share"): some("paths", "methods", "expires"),
    ("POST", "/subscriptions"): st.fixed_dictionaries(
        {"subscriber": anything | st.text().map("http://127.0.0.1:9/{}".format)},
        optional={"ttl": leaves, "options": options | anything},
    ),
    ("PATCH", "/subscriptions/{id}"): some("subscriber", "ttl", "options"),
    ("PUT", "/subscriptions/{id}/confirm"): some("confirmed"),
}
QUERIES = ("marker", "limit", "detailed", "name", "with_count", "echo", "include_delayed", "ids")
bounded = settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def sound(answer):
    assert answer.status < 500, answer.raw
    if answer.status >= 400:
        assert set(answer.body) == {"title", "description"}, answer.raw
        assert answer.body["description"]
    return answer


@pytest.mark.parametrize("call", BODIES)
@bounded
@given(data=st.data())
def test_any_body_is_answered(zaqar, call, data):
    verb, below = call
    queue = f"/queues/fuzz-{data.draw(st.integers(0, 3))}"
    body = data.draw(BODIES[call] | anything)
    headers = {"Content-Type": PATCH_TYPE if call == ("PATCH", "") else "application/json"}
    id = "none"
    if "/subscriptions/" in below and (found := zaqar("GET", f"{queue}/subscriptions").body["subscriptions"]):
        id = found[0]["id"]
    if below == "/subscriptions":
        zaqar("DELETE", queue)
    sound(zaqar(verb, f"{queue}{below.format(id=id)}", body, headers))
    for read in ("", "/messages?echo=true", "/subscriptions"):
        assert sound(zaqar("GET", queue + read)).status == 200


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@bounded
@given(
    raw=st.binary(max_size=40),
    below=st.sampled_from(["", "/messages", "/subscriptions", "/share"]),
    kind=st.sampled_from([PATCH_TYPE, "application/json", "", "application/x-www-form-urlencoded"]),
)
def test_bodies_that_are_not_json_are_refused(zaqar, verb, raw, below, kind):
    sound(zaqar(verb, f"/queues/fuzz{below}", raw, {"Content-Type": kind}))


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/queues"),
        ("GET", "/queues/fuzz/messages"),
        ("GET", "/queues/fuzz/subscriptions"),
        ("GET", "/queues/fuzz/messages/x"),
        ("DELETE", "/queues/fuzz/messages"),
        ("DELETE", "/queues/fuzz/messages/x"),
    ],
)
@bounded
@given(
    query=st.dictionaries(
        st.sampled_from([*QUERIES, "pop"]),
        st.text(max_size=12) | st.integers(-5, 10**25).map(str) | st.sampled_from(["true", "1", ",", "a,b,,"]),
        max_size=4,
    )
)
def test_any_query_is_answered(zaqar, verb, path, query):
    sound(zaqar(verb, f"{path}?{urlencode(query)}"))


@bounded
@given(name=st.text(min_size=1, max_size=70), id=st.text(min_size=1, max_size=70))
def test_any_path_is_answered(zaqar, name, id):
    for verb, below in (("GET", ""), ("GET", "/messages/"), ("DELETE", "/messages/"), ("GET", "/subscriptions/")):
        sound(zaqar(verb, f"/queues/{quote(name, safe='')}{below}{quote(id, safe='') if below else ''}"))
        sound(zaqar(verb, f"/queues/fuzz{below}{quote(id, safe='') if below else ''}"))


@bounded
@given(
    said=st.fixed_dictionaries(
        {"URL-Signature": st.text("0123456789abcdef", max_size=64) | st.text(st.characters(max_codepoint=255))},
        optional={
            name: st.text(st.characters(max_codepoint=255)) for name in ("URL-Paths", "URL-Methods", "URL-Expires")
        }
        | {name: st.text(st.characters(max_codepoint=255)) for name in ("X-Project-Id", "Client-ID", "X-Auth-Token")},
    )
)
def test_any_signed_header_is_answered(stoker, said):
    headers = {name: "".join(c for c in value if c.isprintable()) for name, value in said.items()}
    answer = sound(stoker.request("GET", "/messaging/v2/queues/fuzz/messages", headers=headers))
    assert answer.status == 404
