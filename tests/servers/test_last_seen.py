"""When agents were seen, and what they said of themselves."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from stoker.servers import enrollment
from stoker.servers.last_seen import LastSeen
from stoker.store import servers


@pytest.fixture
def server(store):
    return store.write(lambda tx: enrollment.enroll(tx, "p", "web"))[0]


def test_the_first_call_is_written_and_the_next_is_not(store, server):
    presence = LastSeen(store, 30)
    assert presence.due(server.id, "1.0; hooks=script,foo")
    presence.write(server.id, "1.0; hooks=script,foo")
    assert not presence.due(server.id, "1.0; hooks=script,foo")
    with store.read() as tx:
        found = servers.get(tx, server.id, "p")
    assert found.status(tx.now, timedelta(seconds=65)) == "ONLINE"
    assert found.status(tx.now + timedelta(seconds=66), timedelta(seconds=65)) == "OFFLINE"
    assert (found.agent_version, found.hooks) == ("1.0", ("script", "foo"))


def test_an_agent_that_always_says_something_new_is_not_written_at_every_call(store, server):
    presence = LastSeen(store, 30)
    presence.write(server.id, "1.0")
    assert not any(presence.due(server.id, f"1.{n}") for n in range(100))


@pytest.mark.parametrize(
    ("said", "version", "hooks"),
    [
        ("", None, ()),
        ("1.2.3", "1.2.3", ()),
        ("1.2.3;hooks=", "1.2.3", ()),
        ("; hooks=script", None, ("script",)),
        ("1; hooks=a,,b c,d", "1", ("a", "d")),
        ("<script>; hooks=<b>", None, ()),
        ("v" * 5000, None, ()),
        ("\0; hooks=\0", None, ()),
        ("1; hooks=" + "x," * 50_000, "1", ("x",)),
    ],
)
def test_what_cannot_be_read_is_taken_as_not_said(store, server, said, version, hooks):
    LastSeen(store, 30).write(server.id, said)
    with store.read() as tx:
        found = servers.get(tx, server.id, "p")
    assert (found.agent_version, tuple(dict.fromkeys(found.hooks))) == (version, hooks)


def test_a_server_that_was_removed_meanwhile_is_no_error(store):
    LastSeen(store, 30).write("gone", "1.0")


def test_each_heartbeat_is_written_and_what_comes_between_is_not(store, server, monkeypatch):
    presence, clock = LastSeen(store, 30), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    presence.write(server.id, "1.0")
    clock += 15
    assert not presence.due(server.id, "1.0")
    clock += 14.9  # a poll that was held for 30 s is never that early
    assert presence.due(server.id, "1.0")
