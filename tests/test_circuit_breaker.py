"""The circuit breaker tries an unavailable service with one call at a time, and fails all others at once."""

from __future__ import annotations

import pytest

from stoker.failures import CircuitBreaker, ServiceUnavailable

LONG = 1e9


def fail(breaker: CircuitBreaker) -> None:
    with pytest.raises(ServiceUnavailable, match="no route"), breaker.guard():
        raise ServiceUnavailable("no route")


def refuse(breaker: CircuitBreaker) -> None:
    with pytest.raises(ServiceUnavailable, match="http://x gave no answer lately"), breaker.guard():
        raise AssertionError("the call was made")


def test_after_a_failure_calls_fail_at_once_until_one_call_tries_with_success():
    breaker = CircuitBreaker("http://x", LONG)
    with breaker.guard():
        pass
    fail(breaker)
    refuse(breaker)

    breaker = CircuitBreaker("http://x")
    fail(breaker)
    with breaker.guard():
        refuse(breaker)
    with breaker.guard(), breaker.guard():
        pass


def test_a_failed_trial_begins_another_pause():
    breaker = CircuitBreaker("http://x", LONG, starts_closed=False)
    with pytest.raises(ServiceUnavailable, match="no route"), breaker.guard():
        refuse(breaker)
        raise ServiceUnavailable("no route")
    refuse(breaker)


def test_any_other_error_is_an_answer():
    breaker = CircuitBreaker("http://x", LONG, starts_closed=False)
    with pytest.raises(KeyError), breaker.guard():
        raise KeyError("no such project")
    with breaker.guard(), breaker.guard():
        pass
