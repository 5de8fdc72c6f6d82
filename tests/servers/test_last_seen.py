"""When agents were seen, and what they said of themselves."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from stoker.model.errors import Unavailable
from stoker.servers import enrollment
from stoker.servers.presence import LastSeen
from stoker.store import servers

OFFLINE_AFTER = timedelta(seconds=65)


@pytest.fixture
def server(store):
    return store.write(lambda tx: enrollment.enroll(tx, "p", "web"))[0]


def test_the_first_heartbeat_is_written_and_the_next_is_not(store, server):
    presence = LastSeen(store, 30, OFFLINE_AFTER)
    assert presence.observe(server.id, "1.0; hooks=script,foo")
    presence.write(server.id, "1.0; hooks=script,foo")
    assert not presence.observe(server.id, "1.0; hooks=script,foo")
    with store.read() as tx:
        found = servers.get(tx, server.id, "p")
    assert found.status(tx.now, timedelta(seconds=65)) == "ONLINE"
    assert found.status(tx.now + timedelta(seconds=66), timedelta(seconds=65)) == "OFFLINE"
    assert (found.agent_version, found.hooks) == ("1.0", ("script", "foo"))


def test_changing_agent_data_is_not_written_at_every_heartbeat(store, server):
    presence = LastSeen(store, 30, OFFLINE_AFTER)
    presence.write(server.id, "1.0")
    assert not any(presence.observe(server.id, f"1.{n}") for n in range(100))


def test_a_heartbeat_is_repeated_after_a_failure_of_its_write(store, server, monkeypatch):
    presence = LastSeen(store, 30, OFFLINE_AFTER)

    def fail(*_, **__):
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as failing:
        failing.setattr(store, "write", fail)
        with pytest.raises(Unavailable):
            presence.write(server.id, "1.0; hooks=script")
    assert presence.observe(server.id, "1.0; hooks=script")


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
def test_invalid_agent_data_is_ignored(store, server, said, version, hooks):
    LastSeen(store, 30, OFFLINE_AFTER).write(server.id, said)
    with store.read() as tx:
        found = servers.get(tx, server.id, "p")
    assert (found.agent_version, tuple(dict.fromkeys(found.hooks))) == (version, hooks)


def test_a_server_removed_in_between_is_no_error(store):
    LastSeen(store, 30, OFFLINE_AFTER).write("gone", "1.0")


def last_seen(store, server) -> datetime:
    with store.read() as tx:
        return servers.get(tx, server.id, "p").last_seen


def test_heartbeats_of_agents_without_news_are_collected_once_per_interval(store, server, monkeypatch):
    presence, clock = LastSeen(store, 30, OFFLINE_AFTER), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    presence.write(server.id, "1.0; hooks=script")
    first = last_seen(store, server)
    clock += 11
    assert not presence.observe(server.id, "1.0; hooks=script")
    presence.write_collected()
    assert last_seen(store, server) == first
    clock += 4  # no idle poll is earlier: one of 30 s is held for 15 at least
    assert not presence.observe(server.id, "1.0; hooks=script")
    assert last_seen(store, server) == first
    presence.write_collected()
    second = last_seen(store, server)
    assert second > first
    presence.write_collected()
    assert last_seen(store, server) == second
    with store.read() as tx:
        assert servers.get(tx, server.id, "p").hooks == ("script",)


def test_a_changed_agent_is_written_at_once_also_if_its_heartbeat_is_due(store, server, monkeypatch):
    presence, clock = LastSeen(store, 30, OFFLINE_AFTER), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    presence.write(server.id, "1.0")
    clock += 30
    assert presence.observe(server.id, "1.1")


def test_collected_heartbeats_outlive_an_unavailable_database(store, server, monkeypatch):
    presence, clock = LastSeen(store, 30, OFFLINE_AFTER), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    presence.write(server.id, "1.0")
    first = last_seen(store, server)
    clock += 30
    presence.observe(server.id, "1.0")
    with monkeypatch.context() as without_database:
        without_database.setattr(store, "write", refuse)
        with pytest.raises(Unavailable):
            presence.write_collected()
    presence.write_collected()
    assert last_seen(store, server) > first


def refuse(*_: object, **__: object) -> None:
    raise Unavailable("the database does not answer")


def poll_in_the_past(store, server, ago: timedelta) -> None:
    store.write(lambda tx: servers.record_seen(tx, server.id, tx.now - ago, None, ()))


def logged(do) -> list[tuple[str, str]]:
    with capture_logs() as lines:
        do()
    return [(line["event"], line["server_id"]) for line in lines]


def test_an_agent_that_misses_its_heartbeats_is_logged_once_and_again_when_it_is_back(store, server, monkeypatch):
    presence, clock = LastSeen(store, 30, OFFLINE_AFTER), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    presence.write(server.id, "1.0")
    clock += 64
    assert logged(presence.log_lost) == []
    clock += 2
    poll_in_the_past(store, server, OFFLINE_AFTER)
    assert logged(presence.log_lost) == [("agent.lost", server.id)]
    assert logged(presence.log_lost) == []
    assert logged(lambda: presence.write(server.id, "1.0")) == [("agent.back", server.id)]
    assert logged(lambda: presence.write(server.id, "1.0")) == []


def test_an_agent_that_polls_another_process_is_not_lost(store, server, monkeypatch):
    presence, clock = LastSeen(store, 30, OFFLINE_AFTER), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    presence.write(server.id, "1.0")
    clock += 66
    poll_in_the_past(store, server, timedelta(seconds=1))
    assert logged(presence.log_lost) == []
    assert logged(lambda: presence.write(server.id, "1.0")) == []


def test_no_agent_is_back_only_because_the_process_has_restarted(store, server):
    poll_in_the_past(store, server, timedelta(hours=1))
    assert logged(lambda: LastSeen(store, 30, OFFLINE_AFTER).write(server.id, "1.0")) == []
