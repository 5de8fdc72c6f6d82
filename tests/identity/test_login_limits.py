"""Who has to wait after failed logins, and for how long."""

from __future__ import annotations

import pytest

from stoker.identity import passwords
from stoker.identity.passwords import LoginLimiter
from stoker.model.errors import TooManyRequests


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock) -> LoginLimiter:
    return LoginLimiter(clock)


def wait(limiter: LoginLimiter, user: str, address: str) -> int:
    """Seconds until that user may try again there."""
    try:
        limiter.check(user, address)
    except TooManyRequests as error:
        return error.retry_after
    return 0


def fail(limiter: LoginLimiter, clock: Clock, user: str, address: str, times: int) -> list[int]:
    """Fail so often, each time as soon as it is let in; the waits after each."""
    waits = []
    for _ in range(times):
        limiter.record_failure(user, address)
        waits.append(wait(limiter, user, address))
        clock.now += waits[-1]
    return waits


def test_delays_double_up_to_a_quarter_of_an_hour(limiter, clock):
    waits = fail(limiter, clock, "alice", "10.0.0.1", 17)
    assert waits == [*[0] * 4, *(2**n for n in range(10)), *[900] * 3]


def test_a_successful_login_resets_the_delay(limiter, clock):
    fail(limiter, clock, "alice", "10.0.0.1", 6)
    limiter.record_success("alice", "10.0.0.1")
    assert wait(limiter, "alice", "10.0.0.1") == 0
    assert fail(limiter, clock, "alice", "10.0.0.1", 5) == [0, 0, 0, 0, 1]


def test_failures_are_forgotten(limiter, clock):
    fail(limiter, clock, "alice", "10.0.0.1", 8)
    clock.now += 901
    assert fail(limiter, clock, "alice", "10.0.0.1", 1) == [0]


def test_a_delayed_user_may_log_in_from_another_address(limiter, clock):
    fail(limiter, clock, "alice", "10.0.0.1", 20)
    assert wait(limiter, "alice", "10.0.0.1") == 0  # its last wait is over
    limiter.record_failure("alice", "10.0.0.1")
    assert wait(limiter, "alice", "10.0.0.1") == 900
    assert wait(limiter, "alice", "10.0.0.2") == 0
    assert wait(limiter, "bob", "10.0.0.1") == 0


def test_an_address_that_tries_many_users_is_delayed(limiter, clock):
    """A success of the guesser's own does not help."""
    for number in range(50):
        limiter.record_failure(f"user-{number}", "10.0.0.1")
        limiter.record_success("guesser", "10.0.0.1")
    assert wait(limiter, "alice", "10.0.0.1") == 1
    assert wait(limiter, "alice", "10.0.0.2") == 0


def test_guesses_from_many_addresses_delay_a_user_briefly_at_new_addresses_only(limiter, clock):
    limiter.record_success("alice", "10.0.0.1")
    for number in range(200):
        limiter.record_failure("alice", f"10.1.0.{number}")
    assert wait(limiter, "alice", "10.9.0.1") == 30
    assert wait(limiter, "alice", "10.0.0.1") == 0


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(passwords, "_ENTRIES", 100)
    limiter = LoginLimiter()
    for number in range(1000):
        limiter.record_failure(f"u{number}", f"a{number}")
        limiter.record_success(f"u{number}", f"a{number}")
    assert len(limiter._known) == 100
    assert all(len(each._records) <= 100 for each in (limiter._pairs, limiter._addresses, limiter._users))
