"""Stacks: the resources of one template, managed together, with their actions, statuses, steps and events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field


class Status(StrEnum):
    """The status of an action of a stack, a resource or a deployment."""

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


class Source(Struct, frozen=True, kw_only=True):
    """The input from the user: sufficient to create the stack again, or to restore it."""

    template: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: Values in the request's own ``parameters``, without defaults.
    supplied: Mapping[str, Any] = field(default_factory=dict)


class Phase(StrEnum):
    """The phase of the current operation: first Stoker applies the new template, then it removes outdated resources."""

    APPLY = "apply"
    CLEANUP = "cleanup"
    #: One action on every existing resource: suspend, resume, check or snapshot.
    ACTION = "action"
    IDLE = "idle"


class Stack(Struct, frozen=True, kw_only=True):
    """The small columns of a stack. Template, files and environment are read separately (``Source``)."""

    id: str
    name: str
    project_id: str
    username: str
    action: Action
    status: Status
    reason: str
    description: str = "No description"
    #: ``hot.Parameters`` in JSON form: all values, bound and typed.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: The template's output definitions: ``description``, and either the unresolved ``value`` or the ``error``.
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    version: str
    tags: tuple[str, ...] = ()
    #: Queues that receive the stack's events: ``target`` and ``ttl``.
    event_sinks: tuple[Mapping[str, Any], ...] = ()
    timeout_mins: int | None = None
    disable_rollback: bool = True
    created_at: datetime
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    #: The id of the operation, also of its first event. Work of an older operation detects by it that it is superseded.
    traversal: str
    phase: Phase
    #: Steps of the current phase that have not ended yet.
    remaining: int = 0
    #: The message of the first failure of the current operation. After a failure, no new step starts. Exception: in a
    #: group that tolerates failures, the operation runs all members to the end and then fails.
    failure: str | None = None
    user_project_id: str
    #: The root stack of the tree of nested stacks, which transactions lock; its own id if there is no parent.
    root_id: str
    #: Of a nested stack: the parent stack, and the resource there that represents it.
    parent_id: str | None = None
    parent_resource_id: str | None = None
    parent_resource: str | None = None
    depth: int = 0


#: Key of the data of a deployment's resource: the number of its runs, which is the number of the current one.
RUN_COUNT = "runs"
#: Key of the data of a deployment's resource: whether a CREATE run of the deployment has completed on its server.
CREATED = "created"


class Resource(Struct, frozen=True, kw_only=True):
    """One incarnation of a template's resource. A replacement is a new incarnation; both exist until clean-up."""

    id: str
    stack_id: str
    name: str
    type: str
    action: Action
    status: Status
    reason: str = ""
    physical_id: str | None = None
    #: ``hot.Definition`` in JSON form, as last applied.
    definition: Mapping[str, Any] = field(default_factory=dict)
    #: Resolved properties as last applied.
    properties: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: Data that only the resource type uses.
    data: Mapping[str, Any] = field(default_factory=dict)
    #: By resource name, the id of the required incarnation when this one was created or updated; None until this
    #: resource has started. Names alone would tie a replaced resource to the successor of its requirement. If an update
    #: reversed the order of two resources, the clean-up would then contain a cycle.
    requires: Mapping[str, str | None] = field(default_factory=dict)
    #: False when a newer incarnation has the name, or the template no longer has the resource: clean-up deletes it.
    current: bool = True
    #: The breakpoint that the resource waits at, such as ``pre-create``.
    hook: str | None = None
    #: The operation of the stack whose step ends with the action in progress (``Stack.traversal``).
    operation: str | None = None
    created_at: datetime
    updated_at: datetime | None = None

    @property
    def declared_type(self) -> str:
        """The type in the template, which Heat shows. ``type`` is the type that the environment maps it to."""
        return self.definition.get("mapped_from") or self.type


class Snapshot(Struct, frozen=True, kw_only=True):
    """A snapshot of a stack. ``data`` is the content of an export, with the ``Source`` to restore under ``source``."""

    id: str
    stack_id: str
    name: str | None
    status: Status
    reason: str
    data: Mapping[str, Any]
    created_at: datetime


class StepState(StrEnum):
    """Whether a step waits for other steps, or for a breakpoint to be cleared."""

    WAITING = "waiting"
    PAUSED = "paused"


class Step(Struct, frozen=True, kw_only=True):
    """
    One node of the current plan that has not started.

    ``key`` is the name of a resource that gets a definition, or the id of a resource.
    """

    stack_id: str
    key: str
    #: Requirements that have not ended yet; 0: the step may run.
    waiting: int
    state: StepState
    definition: Mapping[str, Any] | None = None


class Event(Struct, frozen=True, kw_only=True):
    """
    An event of a stack. ``seq`` increases with each event. Events of the stack itself have the name and id of the
    stack.
    """

    id: str
    seq: int = 0
    stack_id: str
    resource_name: str
    resource_type: str
    physical_id: str | None
    action: str
    status: str
    reason: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    at: datetime
