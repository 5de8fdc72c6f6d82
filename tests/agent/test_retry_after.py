"""Retry-After of an overloaded server, in each part of the agent that sends requests."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stoker_agent import enrollment
from stoker_agent.backoff import Backoff
from stoker_agent.channel import Channel
from stoker_agent.config import Config, Paths, Unusable
from stoker_agent.disk import Disk
from stoker_agent.live import Live
from stoker_agent.outbox import Outbox
from stoker_agent.poll import Poller
from stoker_agent.results import Results
from stoker_agent.runs import Runs
from stoker_agent.transports import Document, Senders
from stoker_agent.web import Busy, Web
from support.http_stub import Asked, Said, answering
from support.outboxes import empty
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


class _BusySource:
    """A source whose server is overloaded."""

    name = "stoker"

    def fetch(self, wait: float) -> Document | None:
        raise Busy("the server answered 503", 100.0)

    def come_again(self, news: bool) -> float:
        return 0.0

    def hurry(self) -> None:
        pass

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_polls_wait_as_long_as_requested() -> None:
    poller = Poller([_BusySource()], lambda *_: None, 0.01)
    pauses: list[float | None] = []

    class FirstWait(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            poller.stop()
            return True

    poller._wake = FirstWait()
    poller.run()
    assert pauses[0] is not None and 99 < pauses[0] <= 125


def test_an_overloaded_target_gets_no_other_result(tmp_path: Path) -> None:
    answers = {"c1": Said(503, headers={"Retry-After": "100"})}

    def decide(asked: Asked) -> Said:
        return answers.get(asked.path.split("/")[-2], Said())

    with answering(decide) as there:
        channel = Channel(Config(f"{there.url}/stoker", "s", "key"))
        runs, senders, outbox = Runs(tmp_path), Senders(channel), Outbox(channel, longest=0.02)
        results = Results(runs, Disk(tmp_path, outbox), outbox, senders)
        outbox.start()

        def report(id: str, source: str, inputs: dict[str, str]) -> None:
            listed = [{"name": name, "value": value} for name, value in inputs.items()]
            runs.begin({"id": id, "inputs": listed}, source)
            results.keep(runs.entry(id), {"deploy_status_code": 0})
            results.announce(runs.entry(id))

        report("c1", "stoker", {})
        until(lambda: len(there.asked) >= 1)
        report("c2", "stoker", {})
        for number, id in enumerate(("c3", "c4"), 2):  # each makes the outbox look at all messages
            report(id, "cfn", {"deploy_signal_id": f"{there.url}/cfn/{id}/signal", "deploy_signal_verb": "POST"})
            until(lambda number=number: len(there.asked) >= number)
        assert [asked.path.split("/")[-2] for asked in there.asked] == ["c1", "c3", "c4"]
        empty(outbox)
        senders.close()


def test_output_and_progress_of_a_run_pause(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("50 half\n")
    with answering(lambda _: Said(429, headers={"Retry-After": "100"})) as there:
        live = Live(Channel(Config(there.url, "s", "key")), "c1", tmp_path, {}, 1024)
        until(lambda: len(there.asked) >= 1)
        live.end({})
        assert live.over
        assert len(there.asked) == 1


class _Time:
    """Replaces the time of a module: nothing waits."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.mark.parametrize("status", [429, 503])
def test_an_enrollment_waits_as_long_as_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    time_of_module = _Time()
    monkeypatch.setattr(enrollment, "time", time_of_module)
    enrolled = Said(201, {"server_id": "s1", "name": "n", "key": "s1.secret"})
    answers = iter([Said(status, headers={"Retry-After": "100"}), Said(status, headers={"Retry-After": "1"}), enrolled])
    with answering(lambda _: next(answers)) as there:
        config = enrollment.enroll(Paths.of(str(tmp_path)), there.url, "token", None)
        bodies = [asked.json for asked in there.asked]
    assert config.key == "s1.secret"
    first, second = time_of_module.pauses
    assert 100 <= first <= 125
    assert 1 <= second <= 1.25
    assert bodies[0] == bodies[1] == bodies[2], "a repetition is no other machine"


def test_an_enrollment_gives_up_after_some_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time_of_module = _Time()
    monkeypatch.setattr(enrollment, "time", time_of_module)
    with answering(lambda _: Said(503, headers={"Retry-After": "100"})) as there:
        with pytest.raises(Unusable, match=r"cannot enroll at .*: the server answered 503"):
            enrollment.enroll(Paths.of(str(tmp_path)), there.url, "token", None)
        assert len(there.asked) == 3
    assert sum(time_of_module.pauses) <= 300


def test_an_enrollment_without_a_requested_pause_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrollment, "time", _Time())
    with answering(lambda _: Said(503)) as there:
        with pytest.raises(Unusable):
            enrollment.enroll(Paths.of(str(tmp_path)), there.url, "token", None)
        assert len(there.asked) == 1
