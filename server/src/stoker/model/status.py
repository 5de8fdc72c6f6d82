"""Heat's actions and statuses, shared by stacks, resources and deployments."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The status of an action."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


class Action(StrEnum):
    """The current or last action of a stack or resource. Deployments may have other actions, which authors name."""

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
    """
    Return whether a resource is suspended, not only being suspended.

    While a resource is being suspended, the runs of its SUSPEND action still report results.
    """
    return (action, status) == (Action.SUSPEND, Status.COMPLETE)
