"""Queues: made by being used, described by metadata, emptied and deleted."""

from __future__ import annotations

import uuid

import pytest

from http_messaging.conftest import PATCH_TYPE

DEFAULTS = {
    "_max_messages_post_size": 262144,
    "_default_message_ttl": 3600,
    "_default_message_delay": 0,
    "_enable_encrypt_messages": False,
}


def patch(zaqar, queue, *operations, status=200):
    answer = zaqar("PATCH", queue, list(operations), {"Content-Type": PATCH_TYPE})
    assert answer.status == status, answer.raw
    return answer.body


def test_a_queue_is_created_changed_and_deleted(zaqar):
    path = f"/queues/{uuid.uuid4().hex}"
    made = zaqar("PUT", path, {"description": "mine", "_default_message_ttl": 120})
    assert (made.status, made.raw, made.headers["Location"]) == (201, b"", f"/v2{path}")
    assert zaqar("PUT", path, {"description": "another"}).status == 204
    assert zaqar("GET", path).body == {**DEFAULTS, "description": "mine", "_default_message_ttl": 120}
    assert zaqar("DELETE", path).status == 204
    assert zaqar("DELETE", path).status == 204
    assert zaqar("GET", path).body == DEFAULTS


def test_a_queue_is_created_by_its_first_use(zaqar):
    name = uuid.uuid4().hex
    assert zaqar("GET", f"/queues/{name}/messages").body == {"messages": [], "links": []}
    assert zaqar("DELETE", f"/queues/{name}/messages?pop=3").body == {"messages": []}
    assert zaqar("GET", f"/queues?name={name}").body["queues"] == []
    zaqar.post(f"/queues/{name}", "x")
    assert zaqar("GET", f"/queues?name={name}").body["queues"] == [{"name": name, "href": f"/v2/queues/{name}"}]


def test_deleting_a_queue_deletes_its_contents(zaqar, queue):
    [id] = zaqar.post(queue, "old")
    assert zaqar("POST", f"{queue}/subscriptions", {"subscriber": "http://127.0.0.1:9/"}).status == 201
    assert zaqar("DELETE", queue).status == 204
    assert zaqar("PUT", queue).status == 201
    assert zaqar.bodies(queue) == []
    assert zaqar("GET", f"{queue}/subscriptions").body == {"subscriptions": [], "links": []}
    zaqar.refused("GET", f"{queue}/messages/{id}", status=404)


def test_metadata_is_changed_by_a_json_patch(zaqar, queue):
    add = {"op": "add", "path": "/metadata/a~1b~0", "value": {"deep": [1]}}
    replace = {"op": "replace", "path": "/metadata/_default_message_ttl", "value": 300}
    assert patch(zaqar, queue, add, replace) == {**DEFAULTS, "a/b~": {"deep": [1]}, "_default_message_ttl": 300}
    assert zaqar("GET", queue).body["_default_message_ttl"] == 300
    changed = patch(
        zaqar,
        queue,
        {"op": "remove", "path": "/metadata/a~1b~0"},
        {"op": "remove", "path": "/metadata/_default_message_ttl"},
    )
    assert changed == zaqar("GET", queue).body == DEFAULTS


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"op": "add"}, 400, "a list"),
        ([1], 400, "must be a map"),
        ([{"op": "move", "path": "/metadata/a"}], 400, "move"),
        ([{"op": "add", "path": "/other/a", "value": 1}], 400, "path"),
        ([{"op": "add", "path": "/metadata", "value": 1}], 400, "path"),
        ([{"op": "add", "path": 3, "value": 1}], 400, "path"),
        ([{"op": "add", "path": "/metadata/_default_message_ttl", "value": 1}], 400, "_default_message_ttl"),
    ],
)
def test_an_invalid_patch_changes_nothing(zaqar, queue, changes, status, words):
    good = {"op": "add", "path": "/metadata/good", "value": 1}
    changes = [good, *changes] if isinstance(changes, list) else changes
    said = zaqar.refused("PATCH", queue, changes, status=status, headers={"Content-Type": PATCH_TYPE})
    assert words in said
    assert zaqar("GET", queue).body == DEFAULTS


def test_a_patch_needs_an_existing_queue(zaqar):
    zaqar.refused("PATCH", f"/queues/{uuid.uuid4()}", [], status=404, headers={"Content-Type": PATCH_TYPE})


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        {"_default_message_ttl": 59},
        {"_default_message_ttl": 1209601},
        {"_default_message_ttl": True},
        {"_default_message_ttl": "60"},
        {"_default_message_delay": 901},
        {"_default_message_delay": -1},
        {"_max_messages_post_size": 0},
        {"_max_messages_post_size": 262145},
        {"_enable_encrypt_messages": True},
    ],
)
def test_invalid_queue_metadata_is_refused(zaqar, metadata):
    name = uuid.uuid4().hex
    said = zaqar.refused("PUT", f"/queues/{name}", metadata)
    assert isinstance(metadata, list) or next(iter(metadata)) in said
    assert zaqar("GET", f"/queues?name={name}").body["queues"] == []


@pytest.mark.parametrize("name", ["a%20b", "q" * 65, "%C3%A4", "a%2Cb", "%0A"])
def test_invalid_queue_names_are_refused(zaqar, name):
    for verb, below, body in (
        ("PUT", "", None),
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/share", {}),
        ("GET", "/messages", None),
        ("POST", "/messages", {"messages": [{"body": 1}]}),
        ("DELETE", "/messages?pop=1", None),
        ("GET", "/subscriptions", None),
        ("POST", "/subscriptions", {"subscriber": "http://a/"}),
    ):
        assert "name" in zaqar.refused(verb, f"/queues/{name}{below}", body)


def test_too_much_metadata_is_refused(zaqar):
    zaqar.refused("PUT", f"/queues/{uuid.uuid4()}", {"a": "x" * 65536})


def test_lists_continue_at_their_links(zaqar):
    part = f"list-{uuid.uuid4().hex[:8]}"
    names = sorted(f"{part}-{n:02}" for n in range(25))
    for name in names:
        zaqar("PUT", f"/queues/{name}", {"n": name})
    pages = list(zaqar.pages(f"/queues?name={part}&limit=10&detailed=true", "queues"))
    assert [len(page["queues"]) for page in pages] == [10, 10, 5]
    seen = [(each["name"], each["metadata"]["n"]) for page in pages for each in page["queues"]]
    assert seen == [(name, name) for name in names]
    assert len(zaqar("GET", f"/queues?name={part}").body["queues"]) == 10
    assert zaqar("GET", f"/queues?name={part.upper()}-0").body["queues"] == []
    assert zaqar("GET", "/queues?with_count=true").body["count"] >= 25
    for name in names:
        zaqar("DELETE", f"/queues/{name}")


@pytest.mark.parametrize("query", ["limit=0", "limit=21", "limit=a", "limit=-1", "detailed=perhaps", "with_count=2"])
def test_invalid_list_queries_are_refused(zaqar, query):
    assert query.partition("=")[0] in zaqar.refused("GET", f"/queues?{query}")
