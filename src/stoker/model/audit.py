"""What a policy decided, or who changed one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Verdict(StrEnum):
    ALLOWED = "ALLOWED"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``project_id``: whose server it is about."""

    project_id: str
    who: str | None
    #: Such as ``run CREATE``.
    what: str
    decision: Verdict
    reason: str
    server_id: str | None = None
    deployment_id: str | None = None
    stack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision in the log; ``seq`` orders them."""

    seq: int
    at: datetime
    decision: Decision
