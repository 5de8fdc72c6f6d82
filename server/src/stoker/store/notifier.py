"""
The notifier: informs subscribers in this process of committed changes.

A notification carries a topic and a number, never data: the subscriber reads the store again. A lost notification only
causes a delay, because every waiter has a timeout and ``ALL`` clears every cache.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping

import structlog

_log = structlog.get_logger("stoker.store")

#: Receives the topics that it has subscribed to, of one commit for example, each with its number.
Subscriber = Callable[[Mapping[str, int]], None]

ALL = "*"
"""Anything may have changed: notifications of other processes may be lost."""

#: The kind of topics of servers' documents.
SERVERS = "s"


def server_topic(server_id: str) -> str:
    """Topic of a server's document; the number is the document's new revision."""
    return f"{SERVERS}/{server_id}"


def report_topic(server_id: str) -> str:
    """
    Topic of a server's document in which only runs have ended that the agent has reported, so that it need not read the
    document for them; the number is the document's new revision.
    """
    return f"{SERVERS}/{server_id}/report"


def deployment_topic(deployment_id: str) -> str:
    """Topic of a deployment's output, progress and status; the number is 0."""
    return f"d/{deployment_id}"


def trigger_topic(trigger_id: str) -> str:
    """Topic of a trigger and its targets; the number is 0."""
    return f"t/{trigger_id}"


def stack_topic(stack_id: str) -> str:
    """Topic of a stack's events; the number is 0."""
    return f"e/{stack_id}"


def project_topic(project_id: str, noun: str) -> str:
    """Topic of a project's servers, stacks or triggers, or of its clients' deployments that end; the number is 0."""
    return f"p/{project_id}/{noun}"


JOBS_TOPIC = "jobs"
"""Notified with 0 when a process has more due jobs than free threads."""

TOKENS_TOPIC = "tokens"
"""Notified with 0 when tokens, users or roles were revoked or changed."""


class Notifier:
    """
    Calls the subscribers of each notification's topic.

    A subscriber runs in the thread that committed or in the listener's thread, so it must be fast. An exception affects
    no other subscriber and no caller, because the change is stored already: the subscriber is called with ``ALL``.
    """

    def __init__(self) -> None:
        #: Each subscriber with its kind of topics; None: all topics.
        self._subscribers: list[tuple[str | None, Subscriber]] = []

    def subscribe(self, subscriber: Subscriber, kind: str | None = None) -> None:
        """
        Register a function that is called with the notifications of each commit, and with ``ALL`` instead of others.

        ``kind`` restricts the topics to one kind, which is the part before the slash (``s`` of ``s/1234``).
        """
        self._subscribers.append((kind, subscriber))

    def notify(self, notifications: Mapping[str, int]) -> None:
        """Call the subscribers of these topics, each once, or all of them for ``ALL``."""
        by_kind: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for topic, number in notifications.items():
            by_kind[topic.partition("/")[0]][topic] = number
        for kind, subscriber in self._subscribers:
            wanted = notifications if kind is None else by_kind.get(ALL) or by_kind.get(kind)
            if not wanted:
                continue
            try:
                subscriber(wanted)
            except Exception:
                _log.exception("notification.failed", topics=[*wanted])
                with contextlib.suppress(Exception):
                    subscriber({ALL: 0})
