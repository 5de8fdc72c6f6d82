"""
Tells whoever waits in this process that something committed changed.

A ring carries a topic and a number, never data: who hears it reads the store again. Losing a ring costs
only time, as every waiter also has a limit to its patience.
"""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int], None]


def server_topic(server_id: str) -> str:
    """Rung with the document's new revision."""
    return f"s/{server_id}"


def deployment_topic(deployment_id: str) -> str:
    """Rung with 0 when its log, progress or status changed."""
    return f"d/{deployment_id}"


def trigger_topic(trigger_id: str) -> str:
    """Rung with 0 when the trigger or one of its targets changed."""
    return f"t/{trigger_id}"


TOKENS_TOPIC = "tokens"
"""Rung with 0 when tokens, users or roles were revoked or changed."""


class Bell:
    """Listeners must be quick and must not raise: they run in the thread that committed."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def ring(self, topic: str, number: int) -> None:
        for listener in self._listeners:
            listener(topic, number)
