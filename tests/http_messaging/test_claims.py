"""Claims: messages held for a while."""

from __future__ import annotations

import uuid

import pytest


def claimed(zaqar, queue, query="", **times):
    """(the claim's id, its messages)"""
    answer = zaqar("POST", f"{queue}/claims{query}", times)
    assert answer.status == 201, (answer.status, answer.raw)
    return answer.headers["Location"].rpartition("/")[2], answer.body["messages"]


def test_a_claim_is_created_renewed_and_released(zaqar, queue):
    ids = zaqar.post(queue, "a", "b", "c")
    claim, held = claimed(zaqar, queue, "?limit=2", ttl=100, grace=70)
    assert [each["body"] for each in held] == ["a", "b"]
    assert held[0]["href"] == f"/v2{queue}/messages/{ids[0]}?claim_id={claim}"
    shown = zaqar("GET", f"{queue}/claims/{claim}").body
    assert (shown["ttl"], shown["href"], shown["messages"]) == (100, f"/v2{queue}/claims/{claim}", held)
    assert zaqar.bodies(queue) == ["c"]
    assert zaqar.bodies(queue, "echo=true&include_claimed=true") == ["a", "b", "c"]
    assert zaqar("GET", f"{queue}/messages/{ids[0]}").body["href"].endswith(f"?claim_id={claim}")
    assert zaqar.pop(queue, 20) == ["c"]
    assert zaqar("POST", f"{queue}/claims").status == 204
    assert zaqar("DELETE", f"{queue}/claims/{claim}").status == 204
    assert zaqar("DELETE", f"{queue}/claims/{claim}").status == 204
    zaqar.refused("GET", f"{queue}/claims/{claim}", status=404)
    assert zaqar.bodies(queue) == ["a", "b"]
    again, _ = claimed(zaqar, queue)
    assert again != claim


def test_a_claimed_message_is_deleted_with_the_claims_id(zaqar, queue):
    one, two, three = zaqar.post(queue, 1, 2, 3)
    first, _ = claimed(zaqar, queue, "?limit=1")
    second, _ = claimed(zaqar, queue, "?limit=1")
    zaqar.refused("DELETE", f"{queue}/messages/{one}", status=403)
    zaqar.refused("DELETE", f"{queue}/messages/{one}?claim_id={second}", status=403)
    assert "no claim" in zaqar.refused("DELETE", f"{queue}/messages/{one}?claim_id={uuid.uuid4()}")
    assert "not claimed" in zaqar.refused("DELETE", f"{queue}/messages/{three}?claim_id={first}")
    zaqar.refused("DELETE", f"{queue}/messages?ids={one},{two}&claim_ids={first}", status=403)
    zaqar.refused("DELETE", f"{queue}/messages?ids={three}&claim_ids={first}", status=403)
    assert zaqar.bodies(queue, "echo=true&include_claimed=true") == [1, 2, 3]
    assert zaqar("DELETE", f"{queue}/messages/{one}?claim_id={first}").status == 204
    assert zaqar("DELETE", f"{queue}/messages?ids={two}&claim_ids={first},{second}").status == 204
    assert zaqar.bodies(queue, "echo=true&include_claimed=true") == [3]
    assert zaqar("GET", f"{queue}/claims/{first}").body["messages"] == []


def test_several_messages_are_deleted_claimed_or_not(zaqar, queue):
    """As Zaqar does it."""
    ids = zaqar.post(queue, 1, 2)
    claimed(zaqar, queue, "?limit=1")
    assert zaqar("DELETE", f"{queue}/messages?ids={','.join(ids)}").status == 204
    assert zaqar.bodies(queue, "echo=true&include_claimed=true") == []


def test_messages_outlive_their_claims(zaqar, queue):
    zaqar.post(queue, "short", ttl=60)
    zaqar.post(queue, "long", ttl=10000)
    claim, held = claimed(zaqar, queue, ttl=1000, grace=500)
    assert [each["ttl"] for each in held] == [1500, 10000]
    assert zaqar("PATCH", f"{queue}/claims/{claim}", {"ttl": 20000, "grace": 100}).status == 204
    shown = zaqar("GET", f"{queue}/claims/{claim}").body
    assert shown["ttl"] == 20000
    assert [each["ttl"] for each in shown["messages"]] == [20100, 20100]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON"),
        ([], "object"),
        ({"ttl": 59}, "ttl"),
        ({"ttl": 43201}, "ttl"),
        ({"ttl": "60"}, "ttl"),
        ({"ttl": None}, "ttl"),
        ({"grace": 59}, "grace"),
        ({"grace": 43201}, "grace"),
        ({"grace": 60.0}, "grace"),
    ],
)
def test_invalid_claims_are_refused(zaqar, queue, body, words):
    zaqar.post(queue, 1)
    assert words in zaqar.refused("POST", f"{queue}/claims", body)
    claim, _ = claimed(zaqar, queue)
    assert words in zaqar.refused("PATCH", f"{queue}/claims/{claim}", body)
    assert zaqar("GET", f"{queue}/claims/{claim}").body["ttl"] == 300


@pytest.mark.parametrize("query", ["limit=0", "limit=21", "limit=x"])
def test_claims_of_too_many_messages_are_refused(zaqar, queue, query):
    assert "limit" in zaqar.refused("POST", f"{queue}/claims?{query}", {})


def test_unknown_claims_are_404(zaqar, queue):
    id = uuid.uuid4()
    zaqar.refused("GET", f"{queue}/claims/{id}", status=404)
    zaqar.refused("PATCH", f"{queue}/claims/{id}", {}, status=404)
    zaqar.refused("PATCH", f"/queues/{id}/claims/{id}", {}, status=404)
    assert zaqar("DELETE", f"/queues/{id}/claims/{id}").status == 204
    assert "empty" in zaqar.refused("PATCH", f"{queue}/claims/{id}")


def test_a_message_claimed_too_often_moves_to_the_dead_letter_queue(zaqar):
    letters = f"dead-{uuid.uuid4()}"
    queue = zaqar.queue(_max_claim_count=2, _dead_letter_queue=letters, _dead_letter_queue_messages_ttl=5000)
    [id] = zaqar.post(queue, "poison")
    for _ in range(2):
        claim, [_] = claimed(zaqar, queue)
        zaqar("DELETE", f"{queue}/claims/{claim}")
    zaqar.post(queue, "fresh")
    _, held = claimed(zaqar, queue)
    assert [each["body"] for each in held] == ["fresh"]
    [dead] = zaqar("GET", f"/queues/{letters}/messages?echo=true").body["messages"]
    assert (dead["id"], dead["body"], dead["ttl"]) == (id, "poison", 5000)
    assert zaqar.bodies(queue, "echo=true&include_claimed=true") == ["fresh"]
    assert zaqar.pop(f"/queues/{letters}") == ["poison"]


def test_a_claim_of_dead_letters_only_is_empty(zaqar):
    letters = f"dead-{uuid.uuid4()}"
    queue = zaqar.queue(_max_claim_count=0, _dead_letter_queue=letters)
    zaqar.post(queue, 1, 2, ttl=777)
    assert zaqar("POST", f"{queue}/claims").status == 204
    assert zaqar.bodies(f"/queues/{letters}") == [1, 2]
    zaqar.post(queue, 3)
    assert zaqar.pop(queue) == []
    shown = zaqar("GET", f"/queues/{letters}/messages?echo=true").body["messages"]
    assert [each["ttl"] for each in shown] == [777, 777, 3600]
