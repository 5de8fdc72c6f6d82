"""The interface of senders."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Protocol

from stoker_agent.limits import REPORT
from stoker_agent.web import Answer


class Sender(Protocol):
    """
    Sends results to one target by one signal transport.

    A sender turns the answer's status into the return value::

        class WebhookSignal:
            place, wants_failure_report, limit = "webhook", False, REPORT

            def send(self, id, values):
                return verdict(self._web.call("POST", self._url, json.dumps(values).encode(), JSON))
    """

    #: The target's host. If the target does not answer, its other results wait too.
    place: str
    #: Whether the target expects a failure report after it refuses a result.
    wants_failure_report: bool
    #: Largest report in bytes that the target accepts.
    limit: int

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """
        Send the result of the run ``id``.

        Returns None if the target accepted the result or does not want it, else the reason of a permanent refusal.
        Raises Unreachable for a retry; its subclass Busy means that other results may still be accepted.
        """


class NoSender:
    """Refuses every result with ``reason``, because the agent has no means to send them."""

    place = "nobody"
    wants_failure_report = False
    limit = REPORT

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Return the reason as a permanent refusal."""
        return self._reason


#: Bytes of a report for the run's id.
NAME = 128


def with_run_id(id: str, values: Mapping[str, Any]) -> Dict[str, Any]:
    """Add the run's id to the result. Stoker detects late results of an earlier run by it; Heat ignores it."""
    return {**values, "deploy_config_id": id}


def verdict(answer: Answer) -> Optional[str]:
    """Return the refusal that a final answer states, or None. 404 and 410 mean that the result is no longer wanted."""
    return None if 200 <= answer.status < 300 or answer.status in (404, 410) else answer.summary()
