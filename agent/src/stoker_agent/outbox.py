"""
The outbox: everything that the agent reports, sent in one thread, with retries until the receiver answers.

The outbox is in memory. What must survive the end of the process is on the disk of the module that puts the message:
results in ``runs``.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from stoker_agent.backoff import LONGEST, Backoff
from stoker_agent.web import Busy, Channel, Unreachable

_log = logging.getLogger("stoker-agent")
_STOKER = "stoker"


class _Message(NamedTuple):
    """What is to send, and when to try again if only this message fails."""

    place: str
    send: Callable[[], None]
    retry: Backoff


class Outbox(threading.Thread):
    """
    The messages of one agent, by their keys, which name them in log lines.

    ``channel`` leads to Stoker; without it, messages to Stoker are dropped. ``longest`` is the longest pause in seconds
    between two retries.
    """

    def __init__(self, channel: Optional[Channel], longest: float = LONGEST) -> None:
        super().__init__(name="outbox", daemon=True)
        self._channel = channel
        self._longest = longest
        self._changed = threading.Condition()
        #: In the order in which they were added.
        self._messages: Dict[str, _Message] = {}
        #: Places that did not answer, with the time at which the next message to them is tried.
        self._away: Dict[str, Backoff] = {}

    def put(self, key: str, place: str, send: Callable[[], None]) -> None:
        """
        Send a message soon. It takes the place of an earlier one with the same key.

        ``send`` is called in the outbox's thread until it returns. If it raises Unreachable, other messages to
        ``place`` wait too, except for Busy without a requested pause: the receiver may fail for this message only. For
        all other errors, only this message waits.
        """
        with self._changed:
            self._messages.pop(key, None)
            self._messages[key] = _Message(place, send, Backoff(self._longest))
            self._changed.notify_all()

    def post(
        self,
        key: str,
        verb: str,
        path: str,
        body: Mapping[str, Any],
        on_answer: Callable[[Optional[str]], None] = lambda _: None,
    ) -> None:
        """
        Send JSON to ``path`` of Stoker, as ``put`` does.

        ``on_answer`` receives None if Stoker accepts it, or has no use for it, else why Stoker refuses it for good.
        """
        channel = self._channel
        if channel is None:
            return

        def send() -> None:
            refusal = channel.report(verb, path, body)
            if refusal is not None:
                _log.error("report.refused: Stoker refuses the %s, which is not sent again: %s", key, refusal)
            on_answer(refusal)

        self.put(key, _STOKER, send)

    def drop(self, key: str) -> None:
        """Remove a message that is not wanted any more. Does nothing if there is none."""
        with self._changed:
            self._messages.pop(key, None)
            self._changed.notify_all()

    def wait(self, seconds: Optional[float] = None) -> None:
        """Wait until there is no message, but at most ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: not self._messages, seconds)

    def run(self) -> None:
        """Send messages as long as the process lasts."""
        while True:
            with self._changed:
                key = self._next()
                while key is None:
                    self._changed.wait(self._seconds())
                    key = self._next()
                message = self._messages[key]
            is_sent = self._send(key, message)
            with self._changed:
                if is_sent and self._messages.get(key) is message:
                    del self._messages[key]
                if not self._messages:
                    self._away.clear()
                self._changed.notify_all()

    def _next(self) -> Optional[str]:
        """Return the key of the first message that is due. A place that did not answer may time out, so it is last."""
        now = time.monotonic()
        due = (key for key, message in self._messages.items() if self._due(message) <= now)
        return min(due, key=lambda key: self._messages[key].place in self._away, default=None)

    def _seconds(self) -> Optional[float]:
        """Return the time until a message is due, or None if there is no message."""
        first = min(map(self._due, self._messages.values()), default=None)
        return None if first is None else max(0.0, first - time.monotonic())

    def _due(self, message: _Message) -> float:
        place = self._away.get(message.place)
        return max(message.retry.due, place.due if place else 0.0)

    def _send(self, key: str, message: _Message) -> bool:
        """Try to send a message. Return False if it must be tried again."""
        place = message.place
        try:
            message.send()
        except Unreachable as error:
            _log.warning("report.not_sent: cannot send the %s to %s: %s", key, place, error)
            if isinstance(error, Busy) and not error.retry_after:
                message.retry.postpone()
            else:
                self._away.setdefault(place, Backoff(self._longest)).postpone(error)
            return False
        except Exception as error:  # for example: a file cannot be read or written; other messages are still sent
            _log.error("report.not_sent: cannot send the %s: %s: %s", key, type(error).__name__, error)
            message.retry.postpone()
            return False
        self._away.pop(place, None)
        return True
