"""The time of a site: on PostgreSQL that of the database server, on SQLite the machine's without its jumps."""

from __future__ import annotations

import time

import pytest
from structlog.testing import capture_logs

from stoker.store.clock import Clock
from stoker.store.open import Store

HOUR = 3600.0
START = 1_800_000_000.0


class Machine:
    """A machine whose clock and uptime a test sets. ``database`` is the time of a database server."""

    def __init__(self) -> None:
        self.time = self.database = START
        self.uptime = 100.0
        self.clock = Clock(lambda: self.time, lambda: self.uptime)

    def pass_time(self, seconds: float) -> None:
        self.time += seconds
        self.database += seconds
        self.uptime += seconds

    def measure(self, before: float = 0.001, after: float = 0.001) -> None:
        """Measure the database's time, with these seconds before and after the database reads its clock."""
        asked_at = self.uptime
        self.pass_time(before)
        answer = self.database
        self.pass_time(after)
        self.clock.measure(asked_at, answer)

    @property
    def seconds(self) -> float:
        return self.clock.now().timestamp()

    @property
    def ahead(self) -> float:
        """The seconds by which the clock is ahead of the database server's."""
        return self.seconds - self.database


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("wrong", [HOUR, -HOUR, 0.0])
def test_the_clock_of_the_machine_does_not_matter_with_a_database_server(machine, wrong):
    machine.time += wrong
    machine.measure()
    assert 0 <= machine.ahead < 0.01
    machine.time -= 2 * wrong
    assert 0 <= machine.ahead < 0.01
    assert machine.clock.difference() == pytest.approx(-wrong, abs=0.01)


def test_a_slow_answer_does_not_make_the_clock_worse(machine):
    machine.measure()
    for before, after in ((0.0, 5.0), (5.0, 0.0), (2.5, 2.5)):
        machine.measure(before, after)
        assert 0 <= machine.ahead < 0.03
    machine.measure()
    assert 0 <= machine.ahead < 0.01


def test_the_clock_is_never_behind_a_database_server_that_runs_faster(machine):
    machine.measure()
    for _ in range(100):
        machine.pass_time(1.0)
        machine.database += 0.0005
        assert 0 <= machine.ahead < 0.01
        machine.measure(0.0, 0.004)


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 0.5, -0.5])
def test_the_clock_follows_a_database_server_whose_clock_is_set(machine, jump):
    machine.measure()
    machine.database += jump
    machine.measure()
    assert 0 <= machine.ahead < 0.01


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_single_process_approaches_a_clock_that_is_set_slowly(machine, jump):
    machine.time += jump
    before = machine.seconds
    assert before == pytest.approx(START)
    for _ in range(600):
        machine.clock.approach_machine()
        machine.pass_time(1.0)
        assert 0.9 <= round(machine.seconds - before, 3) <= 1.1
        before = machine.seconds
    assert abs(machine.clock.difference()) == pytest.approx(HOUR - 60, abs=1)
    for _ in range(40_000):
        machine.clock.approach_machine()
        machine.pass_time(1.0)
    assert machine.clock.difference() == pytest.approx(0, abs=0.001)


def test_a_difference_is_logged_when_it_begins_and_when_it_ends(machine):
    machine.measure()
    with capture_logs() as lines:
        machine.time += HOUR
        for _ in range(2):
            machine.measure()
        machine.time -= HOUR
        for _ in range(2):
            machine.measure()
    assert [(line["event"], line.get("seconds")) for line in lines] == [
        ("clock.differs", pytest.approx(HOUR, abs=0.1)),
        ("clock.agrees", None),
    ]


@pytest.fixture
def on_machine(store, monkeypatch):
    """A store on a machine whose clock and uptime continue, and change as the test says."""
    machine, start = Machine(), time.time()
    changes = {"time": 0.0, "uptime": 0.0}
    machine.clock = Clock(lambda: time.time() + changes["time"], lambda: time.time() - start + changes["uptime"])
    monkeypatch.setattr("stoker.store.open.Clock", lambda: machine.clock)
    opened = Store(store.url)
    yield opened, changes
    opened.close()


def ahead(store: Store) -> float:
    """Return the seconds by which the store's time is ahead."""
    return store.write(lambda tx: tx.now).timestamp() - time.time()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("wrong", [HOUR, -HOUR])
def test_transactions_have_the_time_of_the_database_server(on_machine, wrong):
    store, changes = on_machine
    changes["time"] = wrong
    assert abs(ahead(store)) < 60
    with store.read() as tx:
        assert abs(tx.now.timestamp() - time.time()) < 60


def test_the_health_check_corrects_the_clock(on_machine):
    store, changes = on_machine
    assert abs(ahead(store)) < 60
    changes["uptime"] = HOUR
    assert abs(ahead(store) - HOUR) < 60
    store.check()
    if store.dialect == "postgresql":
        assert abs(ahead(store)) < 60
        return
    before = store.clock.now().timestamp()
    changes["uptime"] += HOUR
    changes["time"] += HOUR
    assert abs(store.clock.now().timestamp() - before - 0.9 * HOUR) < 60
