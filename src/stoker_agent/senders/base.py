"""What a sender is: who takes one run's result."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Protocol

from stoker_agent.limits import REPORT
from stoker_agent.web import Answer


class Sender(Protocol):
    #: Who is asked: when that one does not answer, no other result for it is tried for a while.
    place: str
    #: Whether it is to hear of a failure instead when it refuses a result.
    insists: bool
    #: Bytes of the largest report that it takes.
    limit: int

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """
        None when it has the result, or wants it no more; else what it says against it, which is final.

        Raises Unreachable: to be tried again. Busy is one that says nothing about other results.
        """


class Nobody:
    """For results that there is no way to send."""

    place = "nobody"
    insists = False
    limit = REPORT

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        return self._reason


#: Bytes that the run's name takes in a report.
NAME = 128


def named(id: str, values: Mapping[str, Any]) -> Dict[str, Any]:
    """The result with the run it is of: Stoker tells late ones of an earlier run by it, Heat does not mind it."""
    return {**values, "deploy_config_id": id}


def verdict(answer: Answer) -> Optional[str]:
    """What an answer that is not to be tried again says of the result; 404 and 410: nobody wants it any more."""
    return None if 200 <= answer.status < 300 or answer.status in (404, 410) else answer.said()
