"""Attacks that used to keep the service from everybody else. Each must leave GET /healthz, memory and SIGTERM alone."""

from __future__ import annotations

import signal
import time

from support.availability import assert_ends, assert_harmless, observed


def test_the_probe_notices_a_stopped_process(stoker):
    """Without this, none of the other tests could fail."""
    with observed(stoker) as impact:
        stoker.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        stoker.process.send_signal(signal.SIGCONT)
        time.sleep(0.3)
    assert any("took" in complaint for complaint in impact.complaints())


def test_small_requests_are_harmless(stoker, reader):
    assert_harmless(stoker, lambda: [reader.heat("GET", "/stacks") for _ in range(100)])
    assert_ends(stoker)
