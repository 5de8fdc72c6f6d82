"""Messages: posted, listed, popped and deleted."""

from __future__ import annotations

import hashlib
import json
import uuid

import pytest

EVERYTHING = {"text": "ä€😀\0", "n": [1, 1.5, -3, 2**63, None, True], "deep": {"a": {"b": []}}, "": ""}


def test_posted_messages_are_returned(zaqar, queue):
    answer = zaqar("POST", f"{queue}/messages", {"messages": [{"body": EVERYTHING, "ttl": 77, "other": 1}]})
    assert answer.status == 201
    [href] = answer.body["resources"]
    id = href.rpartition("/")[2]
    assert href == f"/v2{queue}/messages/{id}"
    assert answer.headers["Location"] == f"/v2{queue}/messages?ids={id}"
    checksum = "MD5:" + hashlib.md5(json.dumps(EVERYTHING).encode()).hexdigest()
    shown = zaqar("GET", f"{queue}/messages/{id}").body
    assert shown == {
        "id": id,
        "href": href,
        "ttl": 77,
        "age": shown["age"],
        "body": EVERYTHING,
        "checksum": checksum,
    }
    assert zaqar("GET", f"{queue}/messages?ids={id},other").body["messages"] == [shown]
    assert zaqar.bodies(queue) == [EVERYTHING]


def test_messages_of_any_json_are_in_the_order_of_posting(zaqar, queue):
    bodies = [None, False, 0, "", [], {}, 6, 7, 8]
    for n in range(0, 9, 3):
        zaqar.post(queue, *bodies[n : n + 3])
    assert zaqar.bodies(queue) == bodies
    assert zaqar.pop(queue, 4) == bodies[:4]
    assert zaqar.pop(queue) == bodies[4:5]
    assert zaqar.pop(queue, 20) == bodies[5:]
    assert zaqar.pop(queue, 20) == []


def test_a_list_continues_at_its_link(zaqar, queue):
    for n in range(0, 25, 5):
        zaqar.post(queue, *range(n, n + 5))
    seen, sizes, ids = [], [], []
    for page in zaqar.pages(f"{queue}/messages?echo=true&limit=7", "messages"):
        seen += [each["body"] for each in page["messages"]]
        ids += [each["id"] for each in page["messages"]]
        sizes.append(len(page["messages"]))
        zaqar("DELETE", f"{queue}/messages/{ids[-1]}")  # a mark lives longer than its message
    assert seen == list(range(25))
    assert sizes == [7, 7, 7, 4]
    [new] = zaqar.post(queue, "new")
    link = page["links"][0]["href"].removeprefix("/v2")
    assert [each["id"] for each in zaqar("GET", link).body["messages"]] == [new]
    zaqar("DELETE", f"{queue}/messages/{new}")
    assert zaqar.bodies(queue, f"echo=true&marker={ids[19]}") == [21, 22, 23]
    assert zaqar.bodies(queue, f"echo=true&limit=1&marker={uuid.uuid4()}") == [0]
    assert zaqar.bodies(queue, f"echo=true&marker={'9' * 40}") == []
    assert len(zaqar.bodies(queue, "echo=true")) == 10


def test_clients_do_not_receive_their_own_messages(zaqar, queue):
    other = zaqar.another()
    zaqar.post(queue, "mine")
    other.post(queue, "theirs")
    assert zaqar.bodies(queue, "") == ["theirs"]
    assert other.bodies(queue, "") == ["mine"]
    assert zaqar.bodies(queue, "echo=true") == ["mine", "theirs"]
    undashed = {"Client-ID": zaqar.headers["Client-ID"].replace("-", "").upper()}
    found = zaqar("GET", f"{queue}/messages", headers=undashed).body["messages"]
    assert [each["body"] for each in found] == ["theirs"]


@pytest.mark.parametrize("client_id", [None, "", "nobody", "0" * 31])
def test_a_client_id_is_required(stoker, zaqar, queue, client_id):
    headers = {"X-Auth-Token": stoker.token} | ({} if client_id is None else {"Client-ID": client_id})
    id = str(uuid.uuid4())
    for verb, below, body in (
        ("POST", "messages", {"messages": [{"body": 1}]}),
        ("GET", "messages", None),
        ("GET", f"messages/{id}", None),
        ("DELETE", f"messages/{id}", None),
        ("DELETE", "messages?pop=1", None),
    ):
        answer = stoker.request(verb, f"/messaging/v2{queue}/{below}", body, headers)
        assert answer.status == 400, (verb, below)
        assert "Client-ID" in answer.body["description"]
    assert zaqar.bodies(queue) == []


def test_the_metadata_of_a_queue_has_defaults_for_messages(zaqar):
    queue = zaqar.queue(_default_message_ttl=99, _default_message_delay=60, _max_messages_post_size=200)
    zaqar.post(queue, "a")
    zaqar.post(queue, "b", delay=0, ttl=100)
    assert zaqar.bodies(queue) == ["b"]
    shown = zaqar("GET", f"{queue}/messages?echo=1&include_delayed=1").body["messages"]
    assert [each["ttl"] for each in shown] == [99, 100]
    said = zaqar.refused("POST", f"{queue}/messages", {"messages": [{"body": "x" * 200}]})
    assert "200" in said


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b'{"messages": [{"body": "\xff"}]}', "JSON"),
        ([], "object"),
        ({}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": []}, "must not be empty"),
        ({"messages": [{"body": 1}] * 21}, "20"),
        ({"messages": [1]}, "messages[0] must be a map"),
        ({"messages": [{"ttl": 60}]}, "body"),
        ({"messages": [{"body": 1}, {"body": 1, "ttl": 59}]}, "messages[1].ttl must be at least 60"),
        ({"messages": [{"body": 1, "ttl": 1209601}]}, "at most 1209600"),
        ({"messages": [{"body": 1, "ttl": "60"}]}, "ttl"),
        ({"messages": [{"body": 1, "ttl": 10**30}]}, "ttl"),
        ({"messages": [{"body": 1, "delay": 901}]}, "delay"),
        ({"messages": [{"body": 1, "delay": 1.5}]}, "delay"),
        ({"messages": [{"body": "x" * 262144}]}, "262144"),
    ],
)
def test_invalid_messages_are_refused(zaqar, queue, body, words):
    assert words in zaqar.refused("POST", f"{queue}/messages", body)
    assert zaqar.bodies(queue) == []


@pytest.mark.parametrize("query", ["limit=21", "limit=0", "limit=x", "echo=maybe", "include_delayed=2"])
def test_invalid_listings_are_refused(zaqar, queue, query):
    assert query.partition("=")[0] in zaqar.refused("GET", f"{queue}/messages?{query}")


def test_messages_are_read_by_ids(zaqar, queue):
    ids = zaqar.post(queue, *range(3))
    found = zaqar("GET", f"{queue}/messages?ids={ids[2]}&ids={ids[0]},{ids[0]}").body
    assert [each["body"] for each in found["messages"]] == [0, 2]
    zaqar.refused("GET", f"{queue}/messages?ids={uuid.uuid4()}", status=404)
    zaqar.refused("GET", f"{queue}/messages/{uuid.uuid4()}", status=404)
    zaqar.refused("GET", f"/queues/{uuid.uuid4()}/messages?ids={ids[0]}", status=404)
    zaqar.refused("GET", f"/queues/{uuid.uuid4()}/messages/{ids[0]}", status=404)
    assert "20" in zaqar.refused("GET", f"{queue}/messages?ids={','.join(str(n) for n in range(21))}")


def test_messages_are_deleted(zaqar, queue):
    ids = zaqar.post(queue, *range(4))
    assert zaqar("DELETE", f"{queue}/messages/{ids[0]}").status == 204
    assert zaqar("DELETE", f"{queue}/messages/{ids[0]}").status == 204
    assert zaqar("DELETE", f"{queue}/messages?ids={ids[1]},{ids[0]},{ids[2]}").status == 204
    assert zaqar.bodies(queue) == [3]
    other = zaqar.queue()
    assert zaqar("DELETE", f"{other}/messages/{ids[3]}").status == 204
    assert zaqar("DELETE", f"{other}/messages?ids={ids[3]}").status == 204
    assert zaqar("DELETE", f"/queues/{uuid.uuid4()}/messages?ids={ids[3]}").status == 204
    assert zaqar.bodies(queue) == [3]


@pytest.mark.parametrize("query", ["", "?pop=0", "?pop=21", "?pop=x", "?pop=1&ids=a", "?ids=", "?pop="])
def test_invalid_deletions_are_refused(zaqar, queue, query):
    zaqar.post(queue, 1)
    zaqar.refused("DELETE", f"{queue}/messages{query}")
    assert zaqar.bodies(queue) == [1]
