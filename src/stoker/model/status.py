"""Heat's status words, shared by stacks, resources and deployments."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


class Action(StrEnum):
    """What a stack or resource is doing or did last. Deployments may carry any other word besides."""

    INIT = "INIT"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    ROLLBACK = "ROLLBACK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    CHECK = "CHECK"
    SNAPSHOT = "SNAPSHOT"
    RESTORE = "RESTORE"
    ADOPT = "ADOPT"


def is_suspended(action: str, status: str) -> bool:
    """Suspended, and not only about to be: what suspending a resource runs is reported yet."""
    return (action, status) == (Action.SUSPEND, Status.COMPLETE)
