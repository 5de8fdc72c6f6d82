"""What both engines promise (``tests/work/test_contract.py`` holds them to it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from stoker.store.tx import Tx

Handler = Callable[[Mapping[str, Any]], None]

_LONGEST_PAUSE = 300.0


class GiveUp(Exception):
    """Raised by a handler when no repetition can help: the job is dropped."""


class Work(Protocol):
    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """Have a job done once ``tx`` is committed, not before ``at``. Jobs of one kind and key never overlap."""

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        """Forget those that have not begun, or wait to be tried again. One under way goes on."""

    def waits(self, tx: Tx, kind: str, key: str) -> bool:
        """Whether one has not begun, or waits to be tried again, and so will see what ``tx``, a write, commits."""
        ...

    def register(self, kind: str, handler: Handler) -> None:
        """
        Before ``start``. A handler that raises is called again, after a pause that grows. Jobs of a kind that
        nobody registered wait for a process that did.
        """

    def start(self) -> None: ...

    def stop(self, timeout: float = 5) -> None:
        """Begin nothing more and wait for what runs; what does not end in time is done again at the next start."""


def defer_once(work: Work, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
    """However often it is asked for before it begins, it is done once: as was said last."""
    work.cancel(tx, kind, key)
    work.defer(tx, kind, key, args, at=at)


def backoff(attempts: int) -> float:
    """Seconds to wait after so many failed attempts: 1, 2, 4 … up to five minutes."""
    return float(min(2 ** min(attempts, 16), _LONGEST_PAUSE))


def in_words(error: Exception) -> str:
    """What is kept of a failure until the next try."""
    return f"{type(error).__name__}: {error}".replace("\0", "")[:2000]
