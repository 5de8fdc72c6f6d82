"""Threads that survive their exceptions."""

from __future__ import annotations

from structlog.testing import capture_logs

from stoker import background_thread
from stoker.background_thread import BackgroundThread


def test_a_thread_logs_an_exception_and_works_again(monkeypatch):
    monkeypatch.setattr(background_thread, "_PAUSE", 0.0)
    attempts = []

    def work() -> None:
        attempts.append(len(attempts))
        if len(attempts) < 3:
            raise ZeroDivisionError

    with capture_logs() as logs:
        thread = BackgroundThread("stoker-test", work)
        thread.start()
        thread.join(60)
    assert (attempts, thread.is_alive()) == ([0, 1, 2], False)
    assert [(event["event"], event["thread"]) for event in logs] == [("thread.failed", "stoker-test")] * 2
