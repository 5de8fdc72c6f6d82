"""What is over is as if it had never been; and what is asked of the database does not grow with what is stored."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from stoker.http.apis import list_apis
from stoker.http.application import Application
from stoker.messaging import Messaging, limits
from stoker.model.errors import WriteRefused
from stoker.store import queues
from support import clock, query
from support.in_process import Inside

pytestmark = pytest.mark.filterwarnings("ignore")


class Queues(Inside):
    def __init__(self, folder, store) -> None:
        super().__init__(folder, store)
        self.headers["Client-ID"] = str(uuid.uuid4())

    def __call__(self, verb, path, body=None, status=None):
        answer = self.request(verb, f"/messaging/v2{path}", body)
        assert answer.status == status or (status is None and answer.status < 300), answer.raw
        return answer.body

    def cost(self, verb, path, body=None) -> int:
        return self.counted(lambda: self(verb, path, body))

    def post(self, queue, *bodies, **more) -> list[str]:
        answer = self("POST", f"{queue}/messages", {"messages": [{"body": body, **more} for body in bodies]})
        return [each.rpartition("/")[2] for each in answer["resources"]]

    def rows(self, table) -> int:
        with self.store.read() as tx:
            return query.count(tx, table)


@pytest.fixture
def inside(tmp_path, store):
    folder = tmp_path / "state"
    folder.mkdir()
    program = Queues(folder, store)
    yield program
    program.close()


def test_expired_messages_are_never_returned(inside):
    queue = "/queues/q"
    ids = inside.post(queue, 1, 2, ttl=60)
    [alive] = inside.post(queue, 3, ttl=120)
    clock.age(inside.store, "messages", 61)
    found = inside("GET", f"{queue}/messages?echo=true")["messages"]
    assert [(each["id"], each["age"]) for each in found] == [(alive, 61)]
    inside("GET", f"{queue}/messages/{ids[0]}", status=404)
    inside("GET", f"{queue}/messages?ids={','.join(ids)}", status=404)
    clock.age(inside.store, "messages", 600)
    assert inside("DELETE", f"{queue}/messages?pop=20")["messages"] == []


def test_later_posts_delete_expired_messages_in_small_numbers(inside):
    for _ in range(3):
        inside.post("/queues/old", *range(20), ttl=60)
    clock.age(inside.store, "messages", 61)
    inside.post("/queues/new", "x")
    assert inside.rows("messages") == 60 - 50 + 1
    inside.post("/queues/new", "y")
    assert inside.rows("messages") == 2


def test_a_message_without_delay_is_returned_to_readers_with_an_earlier_time(inside, monkeypatch):
    """A later message may be visible already. A reader continues after it, and would miss the earlier one."""
    queue = "/queues/q"
    with monkeypatch.context() as later:
        clock.Clock(datetime.now(UTC) + timedelta(seconds=5), later)
        inside.post(queue, "of a process whose clock is ahead")
    inside.post(queue, "of a process whose clock is right")
    found = inside("GET", f"{queue}/messages?echo=true")["messages"]
    assert [each["body"].split()[-1] for each in found] == ["ahead", "right"]
    assert [each["age"] for each in found] == [0, 0]


def test_delayed_messages_are_returned_when_due(inside):
    inside.post("/queues/q", "later", delay=100)
    assert inside("GET", "/queues/q/messages?echo=true")["messages"] == []
    assert len(inside("GET", "/queues/q/messages?echo=true&include_delayed=true")["messages"]) == 1
    assert inside("DELETE", "/queues/q/messages?pop=1")["messages"] == []
    clock.age(inside.store, "messages", 100)
    assert len(inside("GET", "/queues/q/messages?echo=true")["messages"]) == 1
    assert len(inside("DELETE", "/queues/q/messages?pop=1")["messages"]) == 1


def test_subscriptions_expire(inside):
    said = {"subscriber": "http://127.0.0.1:9/", "ttl": 60}
    old = inside("POST", "/queues/q/subscriptions", said)["subscription_id"]
    assert inside("POST", "/queues/q/subscriptions", said)["subscription_id"] == old
    clock.age(inside.store, "subscriptions", 60)
    assert inside("GET", "/queues/q/subscriptions")["subscriptions"] == []
    inside("GET", f"/queues/q/subscriptions/{old}", status=404)
    inside("PATCH", f"/queues/q/subscriptions/{old}", {"ttl": 100}, status=404)
    new = inside("POST", "/queues/q/subscriptions", said)["subscription_id"]
    assert new != old
    assert inside.rows("subscriptions") == 1


def test_the_number_of_statements_does_not_grow(inside):
    def fill(queue: str, times: int) -> None:
        for n in range(times):
            inside.post(queue, *range(20))
            inside("POST", f"{queue}/subscriptions", {"subscriber": f"http://127.0.0.1:9/{n}"})

    listed = {"warm": [], "small": [], "large": []}
    for name, times in (("warm", 1), ("small", 1), ("large", 12)):
        fill(f"/queues/{name}", times)
    for name in listed:
        found = inside("GET", f"/queues/{name}/messages?echo=true&limit=20")["messages"]
        listed[name] = [each["id"] for each in found]

    def costs(name: str) -> list[int]:
        queue, ids = f"/queues/{name}", listed[name]
        asked = [
            ("GET", f"{queue}/messages?echo=true&limit=20", None),
            ("GET", f"{queue}/messages?ids={','.join(ids)}", None),
            ("GET", f"{queue}/subscriptions?limit=20", None),
            ("POST", f"{queue}/messages", {"messages": [{"body": 1}]}),
            ("DELETE", f"{queue}/messages?pop={1 if name == 'small' else 20}", None),
            ("DELETE", f"{queue}/messages?ids={','.join(ids)}", None),
            ("DELETE", queue, None),
        ]
        return [inside.cost(*each) for each in asked]

    costs("warm")
    assert costs("large") == costs("small")


def test_a_callback_receives_posted_messages_and_may_refuse_them(inside, monkeypatch):
    from stoker.model.errors import Conflict

    heard = []

    def listen(tx, project_id, queue, new):
        heard.append((project_id, queue, [each.body for each in new]))
        if new[0].body == '"no"':
            raise Conflict("not that")
        return True

    app, messaging = inside.services, inside.services.messaging
    app = replace(app, messaging=Messaging(app.work, messaging.subscriptions, messaging.signed_urls, listen))
    monkeypatch.setattr(inside, "client", TestClient(Application(app, list_apis(app.settings))))
    [id] = inside.post("/queues/signals", {"a": 1})
    answer = inside("POST", "/queues/signals/messages", {"messages": [{"body": "no"}]}, status=409)
    assert answer["description"] == "not that"
    [(project, queue, bodies), _] = heard
    assert (queue, bodies) == ("signals", ['{"a":1}'])

    def stored(tx, queue):
        return queues.page_messages(tx, queues.find(tx, project, queue).id, limit=limits.PAGE, delayed=True)

    def do(tx):
        [own] = messaging.post(tx, project, "signals", [{"b": 2}], ttl=2**31 - 1, owner="resource")
        found = [(each.id, each.body) for each in stored(tx, "signals")]
        assert found == [(id, '{"a":1}'), (own, '{"b":2}')]
        assert [each.id for each in messaging.pop(tx, project, "signals")] == [id]
        assert messaging.create_queue(tx, project, "other", owner="resource") is True
        assert messaging.create_queue(tx, project, "other", owner="resource") is False
        messaging.post(tx, project, "other", [1, 2], owner="resource")
        messaging.purge(tx, project, "other", as_owner=True)
        assert stored(tx, "other") == []
        owners = [queues.find(tx, project, name).owner for name in ("signals", "other")]
        assert owners == [None, "resource"]
        for write in (messaging.create_queue, messaging.purge, messaging.delete_queue, messaging.pop):
            with pytest.raises(WriteRefused, match="belongs to a server or a deployment"):
                write(tx, project, "other")
        with pytest.raises(WriteRefused):
            messaging.post(tx, project, "other", [1])
        messaging.delete_queue(tx, project, "other", as_owner=True)
        messaging.delete_queue(tx, project, "none")
        # A user's queue under a name that Stoker needs gives way, with all that is in it.
        assert messaging.create_queue(tx, project, "taken")
        messaging.post(tx, project, "taken", [1])
        assert messaging.create_queue(tx, project, "taken", owner="resource") is True
        assert stored(tx, "taken") == []
        messaging.delete_queue(tx, project, "taken", as_owner=True)

    inside.store.write(do)
    assert [each["name"] for each in inside("GET", "/queues")["queues"]] == ["signals"]
    assert len(heard) == 2
