"""The interface of job queues. ``tests/work/test_contract.py`` tests both implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from stoker.store.tx import Tx

#: A handler receives the ``args`` of a job, and runs outside any transaction.
Handler = Callable[[Mapping[str, Any]], None]

_LONGEST_PAUSE = 300.0


class PermanentFailure(Exception):
    """Raised by a handler to drop a job that no repetition can complete."""


class Work(Protocol):
    """
    A durable job queue: the interface that an implementation for a database provides.

    A job has a kind, which selects its handler, and a key, which identifies its subject. A job runs at least once, so a
    handler must be idempotent::

        def delete_user(args: Mapping[str, Any]) -> None:
            keystone.delete_user(args["user_id"])

        work.register("user.delete", delete_user)
        work.start()
        store.write(lambda tx: work.defer(tx, "user.delete", user_id, {"user_id": user_id}))
    """

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """
        Add a job, which runs after ``tx`` has committed and not before ``at``. Jobs of one kind and key never overlap.

        ``args`` must be serializable as JSON; the handler receives them.
        """

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        """Delete the jobs of this kind and key that have not started or wait for a retry. A running job continues."""

    def is_pending(self, tx: Tx, kind: str, key: str) -> bool:
        """
        Return whether a job of this kind and key has not started or waits for a retry.

        Such a job sees the data that the write transaction ``tx`` commits.
        """
        ...

    def register(self, kind: str, handler: Handler, *, threads: int = 0) -> None:
        """
        Register the handler of a kind of job; call it before ``start``.

        If the handler raises an exception, the job is retried after increasing pauses, except for PermanentFailure.
        Jobs of a kind without a handler in this process wait for a process that registers one.

        ``threads`` is the number of threads, in each process, that serve only this kind. Use it where jobs wait for
        external services and must not delay other jobs. With 0, the kind shares threads with all other kinds.
        """

    def start(self) -> None:
        """Start the worker threads."""
        ...

    def stop(self, timeout: float = 5) -> None:
        """
        Start no more jobs and wait up to ``timeout`` seconds for running jobs.

        A job that does not end in this time runs again after the next start.
        """


def defer_once(work: Work, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
    """
    Defer a job in place of those of the same kind and key that have not started, so it runs once, with the last
    ``args``.
    """
    work.cancel(tx, kind, key)
    work.defer(tx, kind, key, args, at=at)


def backoff(attempts: int) -> float:
    """Return the pause in seconds after this number of failed attempts: 1, 2, 4 … up to 300."""
    return float(min(2 ** min(attempts, 16), _LONGEST_PAUSE))


def describe_error(error: Exception) -> str:
    """Return the text that is stored with a failed job until its next attempt."""
    return f"{type(error).__name__}: {error}".replace("\0", "")[:2000]
