"""Only the newest key of a server opens its door."""

from __future__ import annotations

import base64
import threading
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stoker.model.errors import Unauthorized
from stoker.model.server import Kind, Server
from stoker.servers import enrollment
from stoker.servers.keys import Keys, key_topic
from stoker.store import servers
from stoker.store.open import Store
from support.search import examples


def add(store: Store, id: str, generation: int = 0) -> None:
    made = Server(
        id=id,
        project_id="p",
        name=id,
        kind=Kind.ENROLLED,
        key_generation=generation,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    store.write(lambda tx: servers.add(tx, made))


def issue(store: Store, keys: Keys, id: str) -> str:
    return store.write(lambda tx: keys.issue(tx, id))


def refused(keys: Keys, key: str) -> str:
    with pytest.raises(Unauthorized) as caught:
        keys.authenticate(key)
    assert keys.get_cached(key) is None
    return caught.value.message


def test_an_issued_key_identifies_its_server(store, keys):
    add(store, "a")
    key = issue(store, keys, "a")
    assert keys.get_cached(key) is None
    assert keys.authenticate(key) == "a"
    assert keys.get_cached(key) == "a"


def test_another_sites_key_is_refused(store, keys):
    add(store, "a", generation=1)
    refused(keys, Keys(store, b"another secret").present("a", 1))


def test_the_error_does_not_reveal_the_reason(store, keys):
    add(store, "a")
    key = issue(store, keys, "a")
    wrong = ["", ".", "a", "a.", f"b{key[1:]}", f"{key}x", key[:-1], "a.\0", "\0.x", "a.\udcff", "ä.ü", key.upper()]
    assert len({refused(keys, each) for each in wrong}) == 1


def test_the_notification_all_clears_the_cache(store, keys):
    add(store, "a")
    key = issue(store, keys, "a")
    keys.authenticate(key)
    store.notifier.notify({"*": 0})
    assert keys.get_cached(key) is None


def test_a_key_read_before_its_revocation_is_not_cached(store):
    """The row is read, the key is revoked and rung, and only then does the reader go on."""

    class Slow(Keys):
        def _key(self, server_id: str, generation: int) -> str:
            if threading.current_thread() is reader:
                read.set()
                revoked.wait(60)
            return super()._key(server_id, generation)

    read, revoked = threading.Event(), threading.Event()
    reader = threading.Thread(target=lambda: slow.authenticate(old))
    slow = Slow(store, b"s")
    add(store, "a")
    old = issue(store, slow, "a")
    reader.start()
    assert read.wait(60)
    issue(store, slow, "a")
    revoked.set()
    reader.join(60)
    refused(slow, old)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)  # SQLite has one process
def test_other_processes_are_notified_of_a_revocation(store, keys):
    other = Store(store.url)
    try:
        other.start_listener()
        theirs = Keys(other, b"the site's secret")
        heard = threading.Event()
        other.notifier.subscribe(lambda topics: heard.set() if {"*", key_topic("a")} & topics.keys() else None)
        assert heard.wait(60)  # it listens now
        add(store, "a")
        key = issue(store, keys, "a")
        assert theirs.authenticate(key) == "a"
        heard.clear()
        store.write(lambda tx: enrollment.forget(tx, "a"))
        assert heard.wait(60)
        refused(theirs, key)
    finally:
        other.close()


ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@settings(max_examples=examples(20))
@given(given=st.integers(0, 5), asked=st.integers(0, 6), of=st.sampled_from("ab"), tail=st.sampled_from(["", "=", "A"]))
def test_only_the_key_of_the_current_generation_is_valid(store, keys, given, asked, of, tail):
    store.write(lambda tx: [servers.delete(tx, each) for each in "ab"] and None)
    add(store, "a", generation=given)
    add(store, "b", generation=1)
    key = keys.present(of, asked) + tail
    right = tail == "" and asked == (given if of == "a" else 1) != 0
    store.notifier.notify({"*": 0})
    if right:
        assert keys.authenticate(key) == of
    else:
        refused(keys, key)


@settings(max_examples=examples(30))
@given(id=ids, secret=st.binary(max_size=40))
def test_no_invented_key_is_valid(store, keys, id, secret):
    refused(keys, f"{id}.{base64.urlsafe_b64encode(secret).decode()}")


def test_a_refused_key_is_logged_once_for_each_server(keys, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    with capture_logs() as lines:
        for key in ("a.wrong", "a.wrong", "b.wrong", "x" * 5000, *(f"c{number}.wrong" for number in range(200))):
            with pytest.raises(Unauthorized):
                keys.authenticate(key, "192.0.2.1")
    assert {line["event"] for line in lines} == {"agent_key.refused"}
    assert [line["server_id"] for line in lines[:3]] == ["a", "b", "x" * 64]
    assert len(lines) == 100
    assert {line["address"] for line in lines} == {"192.0.2.1"}
