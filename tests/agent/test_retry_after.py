"""Retry-After of an overloaded server, in each part of the agent that sends requests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker_agent import enrollment
from stoker_agent.backoff import Backoff
from stoker_agent.config import Config, Paths, Unusable
from stoker_agent.live import Live
from stoker_agent.web import Busy, Channel, Web
from support.http_stub import Said, answering
from support.waiting import until


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [(429, "30", 30), (503, "86400", 240), (503, "-1", 0), (503, "soon", 0), (503, None, 0), (500, "30", 0)],
)
def test_an_overloaded_server_names_the_pause(status: int, header: str | None, seconds: float) -> None:
    with answering(lambda _: Said(status, headers={} if header is None else {"Retry-After": header})) as there:
        web = Web()
        with pytest.raises(Busy) as caught:
            web.call("GET", there.url)
        web.close()
    assert caught.value.retry_after == seconds


def test_a_requested_pause_is_spread_and_never_shortened() -> None:
    pauses = [Backoff().next(240.0) for _ in range(100)]
    assert 240 <= min(pauses) < max(pauses) <= 300
    grown = Backoff()
    assert max(grown.next(1.0) for _ in range(20)) >= 15  # the agent's own pause is longer


def test_output_and_progress_of_a_run_pause(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("50 half\n")
    with answering(lambda _: Said(429, headers={"Retry-After": "100"})) as there:
        channel = Channel(Config(there.url, "s", "key"))
        live = Live(channel, "c1", tmp_path, {}, 1024)
        until(lambda: len(there.asked) >= 1)
        live.end({})
        assert not live.is_alive()
        assert len(there.asked) == 1
        channel.close()


class _Time:
    """Replaces the time of a module: nothing waits."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def enroll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[float], list[Any]]]:
    """Return a function that enrolls at a server with these answers, and returns the pauses and the requests."""
    time_of_module = _Time()
    monkeypatch.setattr(enrollment, "time", time_of_module)

    def call(*answers: Said, reason: str = "") -> tuple[list[float], list[Any]]:
        left = list(answers)
        with answering(lambda _: left.pop(0)) as there:
            with pytest.raises(Unusable, match=reason) if reason else contextlib.nullcontext():
                assert enrollment.enroll(Paths.of(str(tmp_path)), there.url, "token", None).key == "s1.secret"
            return time_of_module.pauses, [asked.json for asked in there.asked]

    return call


@pytest.mark.parametrize("status", [429, 503])
def test_an_enrollment_waits_as_long_as_requested(enroll, status: int) -> None:
    enrolled = Said(201, {"server_id": "s1", "name": "n", "key": "s1.secret"})
    (first, second), bodies = enroll(
        *(Said(status, headers={"Retry-After": pause}) for pause in ("100", "1")), enrolled
    )
    assert 100 <= first <= 125
    assert 1 <= second <= 1.25
    assert bodies[0] == bodies[1] == bodies[2], "a repetition is no other machine"


def test_an_enrollment_gives_up_after_some_minutes_and_at_once_without_a_requested_pause(enroll) -> None:
    reason = r"cannot enroll at .*: the server answered 503"
    pauses, bodies = enroll(*[Said(503, headers={"Retry-After": "100"})] * 3, reason=reason)
    assert (len(bodies), sum(pauses) <= 300) == (3, True)
    assert len(enroll(Said(503), reason=reason)[1]) == 1
