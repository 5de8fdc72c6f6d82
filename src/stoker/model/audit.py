"""Entries of the audit log: decisions of policies, changes of policies, and rejected writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of an audited action."""

    ALLOWED = "ALLOWED"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One audited action. ``project_id`` is the project of the server, container or queue that the action concerns."""

    project_id: str
    actor: str | None
    #: The action in words, such as ``run CREATE``.
    action: str
    outcome: Outcome
    reason: str
    server_id: str | None = None
    deployment_id: str | None = None
    stack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision as stored in the audit log. ``seq`` increases with each entry."""

    seq: int
    at: datetime
    decision: Decision
