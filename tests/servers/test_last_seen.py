"""When agents were seen, and what they said of themselves."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace

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


@pytest.fixture
def presence(store):
    return LastSeen(store, 30, OFFLINE_AFTER)


@pytest.fixture
def clock(monkeypatch):
    """The machine's clock, which stands still until a test sets ``now``."""
    clock = SimpleNamespace(now=time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


@contextmanager
def no_database(store):
    """The database does not take writes."""

    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("the database does not answer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", refuse)
        yield


def test_the_first_heartbeat_is_written_and_the_next_is_not(store, server, presence):
    assert presence.observe(server.id, "1.0; hooks=script,foo")
    with no_database(store), pytest.raises(Unavailable):
        presence.write(server.id, "1.0; hooks=script,foo")
    assert presence.observe(server.id, "1.0; hooks=script,foo"), "it is repeated after a failure of its write"
    presence.write(server.id, "1.0; hooks=script,foo")
    assert not presence.observe(server.id, "1.0; hooks=script,foo")
    with store.read() as tx:
        found = servers.get(tx, server.id, "p")
    assert found.status(tx.now, timedelta(seconds=65)) == "ONLINE"
    assert found.status(tx.now + timedelta(seconds=66), timedelta(seconds=65)) == "OFFLINE"
    assert (found.agent_version, found.hooks) == ("1.0", ("script", "foo"))


def test_changing_agent_data_is_not_written_at_every_heartbeat(server, presence, clock):
    presence.write(server.id, "1.0")
    assert not any(presence.observe(server.id, f"1.{n}") for n in range(100))
    clock.now += 30
    assert presence.observe(server.id, "1.1"), "at once, also if its heartbeat is due"


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
def test_invalid_agent_data_is_ignored(store, server, presence, said, version, hooks):
    presence.write(server.id, said)
    with store.read() as tx:
        found = servers.get(tx, server.id, "p")
    assert (found.agent_version, tuple(dict.fromkeys(found.hooks))) == (version, hooks)


def test_a_server_removed_in_between_is_no_error(presence):
    presence.write("gone", "1.0")


def last_seen(store, server) -> datetime:
    with store.read() as tx:
        return servers.get(tx, server.id, "p").last_seen


def test_heartbeats_of_agents_without_news_are_collected_once_per_interval(store, server, presence, clock):
    presence.write(server.id, "1.0; hooks=script")
    first = last_seen(store, server)
    clock.now += 11
    assert not presence.observe(server.id, "1.0; hooks=script")
    presence.write_collected()
    assert last_seen(store, server) == first
    clock.now += 4  # no idle poll is earlier: one of 30 s is held for 15 at least
    assert not presence.observe(server.id, "1.0; hooks=script")
    assert last_seen(store, server) == first
    with no_database(store), pytest.raises(Unavailable):
        presence.write_collected()
    presence.write_collected()
    second = last_seen(store, server)
    assert second > first
    presence.write_collected()
    assert last_seen(store, server) == second
    with store.read() as tx:
        assert servers.get(tx, server.id, "p").hooks == ("script",)


def poll_in_the_past(store, server, ago: timedelta) -> None:
    store.write(lambda tx: servers.record_seen(tx, server.id, tx.now - ago, None, ()))


def logged(do) -> list[tuple[str, str]]:
    with capture_logs() as lines:
        do()
    return [(line["event"], line["server_id"]) for line in lines]


def test_an_agent_that_misses_its_heartbeats_is_logged_once_and_again_when_it_is_back(store, server, presence, clock):
    presence.write(server.id, "1.0")
    clock.now += 64
    assert logged(presence.log_lost) == []
    clock.now += 2
    poll_in_the_past(store, server, OFFLINE_AFTER)
    assert logged(presence.log_lost) == [("agent.lost", server.id)]
    assert logged(presence.log_lost) == []
    assert logged(lambda: presence.write(server.id, "1.0")) == [("agent.back", server.id)]
    assert logged(lambda: presence.write(server.id, "1.0")) == []


def test_an_agent_that_polls_another_process_is_not_lost(store, server, presence, clock):
    presence.write(server.id, "1.0")
    clock.now += 66
    poll_in_the_past(store, server, timedelta(seconds=1))
    assert logged(presence.log_lost) == []
    assert logged(lambda: presence.write(server.id, "1.0")) == []


def test_no_agent_is_back_only_because_the_process_has_restarted(store, server, presence):
    poll_in_the_past(store, server, timedelta(hours=1))
    assert logged(lambda: presence.write(server.id, "1.0")) == []
