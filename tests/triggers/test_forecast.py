"""The forecast of schedules: which times it has, and which servers wait for their windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stoker.store import servers
from stoker.triggers.forecast import forecast

#: Long after the present, so that no time of the tests has passed.
DAY = datetime(2035, 6, 1, tzinfo=UTC)
NIGHT = {"maintenance_windows": [{"cron": "0 22 * * *", "minutes": 60, "timezone": "UTC"}]}
LATER = {"maintenance_windows": [{"cron": "0 23 * * *", "minutes": 60, "timezone": "UTC"}]}


@pytest.fixture
def create(fleet):
    """Creates a schedule."""

    def do(name, on, trigger=None, **said):
        body = {"config_id": fleet.config(), "servers": [server.id for server in on], **(trigger or {})}
        return fleet.schedule(name=name, trigger=body, **said)

    return do


def predict(fleet, begin=DAY, end=DAY + timedelta(days=1), limit=100):
    return fleet.world.read(forecast, fleet.world.engine, fleet.world.project, begin, end, limit)


def since(time):
    return datetime.fromisoformat(time) - DAY


def hours(times):
    return [(entry.schedule_name, int(entry.time[11:13])) for entry in times]


def test_the_times_of_all_schedules_are_in_order(fleet, create):
    on = fleet.servers(1)
    create("morning", on, cron="0 6,7 * * *")
    create("once", on, at="2035-06-01T06:30:00Z")
    create("vienna", on, cron="0 8 * * *", timezone="Europe/Vienna")
    create("disabled", on, cron="* * * * *", enabled=False)
    create("tomorrow", on, at="2035-06-02T00:00:00Z")
    times, more, _ = predict(fleet)
    assert hours(times) == [("morning", 6), ("vienna", 6), ("once", 6), ("morning", 7)]
    assert not more
    first, more, _ = predict(fleet, limit=2)
    assert (hours(first), more) == ([("morning", 6), ("vienna", 6)], True)
    later, *_ = predict(fleet, begin=DAY + timedelta(hours=7))
    assert hours(later) == [("morning", 7)]  # the begin belongs to the range
    assert predict(fleet, end=DAY + timedelta(hours=6))[:2] == ([], False)  # its end does not
    engine, end = fleet.world.engine, DAY + timedelta(days=1)
    assert fleet.world.read(forecast, engine, "another project", DAY, end, 10) == ([], False, [])


def test_servers_outside_their_windows_wait_unless_it_is_for_a_preview(fleet, create):
    (free,), (later,) = fleet.servers(1), fleet.servers(1, policy=LATER)
    (night,) = fleet.servers(1, policy=NIGHT, modes=("preview",))
    create("job", [free, night, later], cron="0 12,22 * * *")
    create("preview", [night], cron="30 12 * * *", trigger={"mode": "PREVIEW"})
    noon, preview, evening = predict(fleet)[0]
    assert (noon.servers, noon.waiting, noon.waits_until) == (3, 2, "2035-06-01T23:00:00Z")
    assert (preview.servers, preview.waiting, preview.waits_until) == (1, 0, None)
    assert (evening.servers, evening.waiting, evening.waits_until) == (3, 1, "2035-06-01T23:00:00Z")


def test_a_schedule_that_could_not_start_says_why(fleet, create):
    (server,) = fleet.servers(1)
    create("job", [server], cron="0 12 * * *")
    fleet.world.store.write(lambda tx: servers.delete(tx, server.id))
    ((entry,), *_) = predict(fleet)
    assert (entry.servers, entry.waits_until) == (0, None)
    assert "could not be found" in entry.problem


def test_the_windows_of_the_servers_are_periods(fleet, create):
    adjoining = [*NIGHT["maintenance_windows"], *LATER["maintenance_windows"]]
    on = [
        *fleet.servers(1),
        *fleet.servers(2, policy=NIGHT),
        *fleet.servers(1, policy={"maintenance_windows": adjoining}),
    ]
    create("job", on, cron="0 12 * * *")
    begin = DAY + timedelta(hours=22, minutes=30)
    found = predict(fleet, begin, begin + timedelta(days=1)).windows
    (id,) = {period.schedule_id for period in found}
    assert id
    hour = [(period.servers, since(period.begin), since(period.end)) for period in found]
    half, day = timedelta(hours=22, minutes=30), timedelta(days=1)
    assert hour == [
        (2, half, timedelta(hours=23)),
        (2, day + timedelta(hours=22), day + half),
        (1, half, day),
        (1, day + timedelta(hours=22), day + half),
    ]
