"""Subscriptions, and the webhooks that they are."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from http_messaging.conftest import Zaqar
from support.http_stub import Answering, Said
from support.server import served

NOWHERE = "http://127.0.0.1:9/"


class Listener(Answering):
    """A webhook; ``answers`` are its next statuses, then 200."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        super().__init__(lambda _: Said(self.answers.pop(0) if self.answers else 200))

    def documents(self, path: str) -> list[dict]:
        return [asked.json for asked in list(self.asked) if asked.path == path]


@pytest.fixture
def listener() -> Iterator[Listener]:
    running = Listener()
    yield running
    running.close()


def subscribe(zaqar, queue, subscriber, **more) -> str:
    answer = zaqar("POST", f"{queue}/subscriptions", {"subscriber": subscriber, **more})
    assert answer.status == 201, answer.raw
    assert answer.headers["Location"] == f"/v2{queue}/subscriptions"
    return answer.body["subscription_id"]


def test_a_subscription_is_created_changed_and_deleted(zaqar, queue):
    id = subscribe(zaqar, queue, NOWHERE, ttl=600, options={"a": 1})
    path = f"{queue}/subscriptions/{id}"
    shown = zaqar("GET", path).body
    assert shown == {
        "id": id,
        "source": queue.rpartition("/")[2],
        "subscriber": NOWHERE,
        "ttl": 600,
        "age": shown["age"],
        "options": {"a": 1},
        "confirmed": False,
    }
    assert zaqar("GET", f"{queue}/subscriptions").body["subscriptions"] == [shown]
    assert zaqar("PATCH", path, {"ttl": 700, "options": {"b": 2}}).status == 204
    assert zaqar("PATCH", path, {"subscriber": NOWHERE + "b"}).status == 204
    changed = zaqar("GET", path).body
    assert (changed["ttl"], changed["options"], changed["subscriber"]) == (700, {"b": 2}, NOWHERE + "b")
    assert zaqar("DELETE", path).status == 204
    assert zaqar("DELETE", path).status == 204
    zaqar.refused("GET", path, status=404)
    zaqar.refused("PATCH", path, {"ttl": 60}, status=404)


def test_a_subscriber_is_called_once(zaqar, queue):
    first = subscribe(zaqar, queue, NOWHERE)
    second = subscribe(zaqar, queue, NOWHERE + "b")
    for said in ({"subscriber": NOWHERE, "options": {"a": 1}}, {"subscriber": NOWHERE, "ttl": 99}):
        assert "already" in zaqar.refused("POST", f"{queue}/subscriptions", said, status=409)
    assert subscribe(zaqar, queue, NOWHERE) == first
    zaqar.refused("PATCH", f"{queue}/subscriptions/{second}", {"subscriber": NOWHERE}, status=409)
    assert zaqar("PATCH", f"{queue}/subscriptions/{second}", {"subscriber": NOWHERE + "b", "ttl": 99}).status == 204
    subscribe(zaqar, zaqar.queue(), NOWHERE)


def test_lists_continue_at_their_links(zaqar, queue):
    ids = [subscribe(zaqar, queue, f"{NOWHERE}{n}") for n in range(7)]
    pages = list(zaqar.pages(f"{queue}/subscriptions?limit=3", "subscriptions"))
    assert [[each["id"] for each in page["subscriptions"]] for page in pages] == [ids[:3], ids[3:6], ids[6:]]
    zaqar.refused("GET", f"{queue}/subscriptions?limit=21")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "subscriber"),
        ([], "object"),
        (b"{", "JSON"),
        ({"ttl": 60}, "subscriber"),
        ({"subscriber": ""}, "subscriber"),
        ({"subscriber": 1}, "a string"),
        ({"subscriber": "mailto:a@example.org"}, "mail"),
        ({"subscriber": "trust+http://a/"}, "trust"),
        ({"subscriber": "ftp://a/"}, "ftp"),
        ({"subscriber": "http://"}, "URL"),
        ({"subscriber": "http:///path"}, "URL"),
        ({"subscriber": "http://a b/"}, "URL"),
        ({"subscriber": "http://ä/"}, "URL"),
        ({"subscriber": "http://[::1/"}, "URL"),
        ({"subscriber": "http://a:99999/"}, "URL"),
        ({"subscriber": "http://a\n/"}, "URL"),
        ({"subscriber": "http://a/" + "x" * 1024}, "1024"),
        ({"subscriber": NOWHERE, "ttl": 59}, "ttl"),
        ({"subscriber": NOWHERE, "ttl": 10**12}, "ttl"),
        ({"subscriber": NOWHERE, "ttl": "60"}, "ttl"),
        ({"subscriber": NOWHERE, "options": []}, "options"),
        ({"subscriber": NOWHERE, "options": {"post_data": {}}}, "post_data"),
        ({"subscriber": NOWHERE, "options": {"post_headers": []}}, "post_headers"),
        ({"subscriber": NOWHERE, "options": {"post_headers": {"a": 1}}}, "post_headers"),
        ({"subscriber": NOWHERE, "options": {"post_headers": {"a": "b\r\nc: d"}}}, "post_headers"),
        ({"subscriber": NOWHERE, "options": {"post_headers": {"a b": "c"}}}, "post_headers"),
    ],
)
def test_invalid_subscriptions_are_refused(zaqar, said, words):
    queue = f"/queues/{uuid.uuid4()}"
    assert words in zaqar.refused("POST", f"{queue}/subscriptions", said)
    assert zaqar("GET", f"/queues?name={queue.rpartition('/')[2]}").body["queues"] == []
    id = subscribe(zaqar, queue, NOWHERE)
    if said != {"ttl": 60}:
        zaqar.refused("PATCH", f"{queue}/subscriptions/{id}", said)
    shown = zaqar("GET", f"{queue}/subscriptions/{id}").body
    assert (shown["subscriber"], shown["ttl"], shown["options"]) == (NOWHERE, 3600, {})


def test_webhooks_are_called(zaqar, queue, listener):
    subscribe(zaqar, queue, f"{listener.url}/plain")
    options = {"post_data": '{"wrapped": "$zaqar_message$"}', "post_headers": {"X-Mine": "yes", "Content-Type": "a/b"}}
    subscribe(zaqar, queue, f"{listener.url}/formed", options=options)
    ids = zaqar.post(queue, {"nul": "\0"}, "second", ttl=99)
    zaqar.stoker.until(lambda: len(listener.asked) >= 4)
    name = queue.rpartition("/")[2]
    expected = [
        {"id": id, "body": body, "ttl": 99, "queue_name": name, "Message_Type": "Notification"}
        for id, body in zip(ids, ({"nul": "\0"}, "second"), strict=True)
    ]
    assert listener.documents("/plain") == expected
    assert listener.documents("/formed") == [{"wrapped": each} for each in expected]
    headers = {asked.path: asked.headers for asked in listener.asked}
    assert headers["/plain"]["content-type"] == "application/json"
    assert (headers["/formed"]["content-type"], headers["/formed"]["x-mine"]) == ("a/b", "yes")
    assert zaqar.bodies(queue) == [{"nul": "\0"}, "second"]


def test_a_failed_webhook_call_is_retried_and_a_refused_one_is_not(zaqar, queue, listener):
    listener.answers = [503, 500, 200, 404, 200]
    subscribe(zaqar, queue, f"{listener.url}/w")
    zaqar.post(queue, 1, 2, 3)
    zaqar.stoker.until(lambda: len(listener.asked) >= 5)
    assert [each["body"] for each in listener.documents("/w")] == [1, 1, 1, 2, 3]


def test_a_deleted_subscription_is_not_called(zaqar, queue, listener):
    id = subscribe(zaqar, queue, f"{listener.url}/gone")
    subscribe(zaqar, queue, f"{listener.url}/stays")
    zaqar.post(queue, 1)
    zaqar.stoker.until(lambda: len(listener.asked) >= 2)
    zaqar("DELETE", f"{queue}/subscriptions/{id}")
    zaqar.post(queue, 2)
    zaqar.stoker.until(lambda: len(listener.documents("/stays")) >= 2)
    assert [each["body"] for each in listener.documents("/gone")] == [1]


def test_acknowledged_messages_reach_webhooks_after_kill_9(tmp_path, database_url, listener):
    with served(tmp_path, "--webhook-networks", "127.0.0.0/8", database=database_url) as stoker:
        zaqar = Zaqar(stoker)
        queue = zaqar.queue()
        for n in range(30):
            subscribe(zaqar, queue, f"{listener.url}/{n}")
        zaqar.post(queue, "x", "y")
        stoker.kill9()
        stoker.restart()
        for n in range(30):
            stoker.until(lambda n=n: len(listener.documents(f"/{n}")) >= 2, seconds=60)
            assert {each["body"] for each in listener.documents(f"/{n}")} == {"x", "y"}
