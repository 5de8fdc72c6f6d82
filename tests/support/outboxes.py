"""Ends the work of an agent's outbox, whose thread lives as long as its process."""

from __future__ import annotations

from stoker_agent.outbox import Outbox

_PATIENCE = 60.0


def empty(outbox: Outbox) -> None:
    """
    Drop all messages, so that the thread sleeps.

    Otherwise it would try to send them a hundred times a second until the last test of the process has ended, and
    take random numbers meanwhile, which Hypothesis mistakes for an unreliable test.
    """
    for key in list(outbox._messages):
        outbox.drop(key)
    outbox.wait(_PATIENCE)
    assert not outbox._messages, "the outbox is still busy"
