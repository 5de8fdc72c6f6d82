"""A stack: a template's resources living together, and the nouns of its life cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from stoker.model.status import Action, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a user handed in: enough to build the stack anew, and to go back to it."""

    template: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: Values of the request's own ``parameters``, before defaults.
    supplied: Mapping[str, Any] = field(default_factory=dict)


class Phase(StrEnum):
    """Where the current operation stands: first everything of the new template, then what is left over."""

    APPLY = "apply"
    CLEAN = "clean"
    #: Something is done to everything there is: suspend, resume, check, snapshot.
    VISIT = "visit"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The light columns of a stack; its template, files and environment are read apart (``Source``)."""

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
    #: The template's output definitions, values unresolved.
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    version: str
    tags: tuple[str, ...] = ()
    #: Queues that are told of its events: ``target`` and ``ttl``.
    event_sinks: tuple[Mapping[str, Any], ...] = ()
    timeout_mins: int | None = None
    disable_rollback: bool = True
    created_at: datetime
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    #: Changes with every operation: what belongs to an older one knows it is superseded.
    traversal: str
    phase: Phase
    #: Steps of the current phase that have not ended yet.
    remaining: int = 0
    #: The first failure's text of the current operation. Nothing new starts after it, but for members of a group that
    #: tolerates failures: there the operation goes on to its end, and has failed then.
    failure: str | None = None
    user_project_id: str
    #: The stack at the top of the tree of nested ones, which is what transactions hold; its own where there is none.
    root_id: str
    #: Of a nested stack: the stack it lives in, and the resource there that it is.
    parent_id: str | None = None
    parent_resource_id: str | None = None
    parent_resource: str | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One incarnation of a template's resource: a replacement is a new one beside it until cleaned up."""

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
    #: What the type keeps for itself.
    data: Mapping[str, Any] = field(default_factory=dict)
    #: By name, the incarnation it was brought to its definition with; None as long as it has not begun. A name alone
    #: would tie a replaced resource to its requirement's successor, and after a template that turns two resources'
    #: order round, the clean-up would wait for itself.
    requires: Mapping[str, str | None] = field(default_factory=dict)
    #: False once a newer incarnation took its name or the template dropped it: to be cleaned up.
    current: bool = True
    #: The breakpoint it waits at, such as ``pre-create``.
    hook: str | None = None
    created_at: datetime
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``data`` is what an export says, with the ``Source`` to go back to under ``source``."""

    id: str
    stack_id: str
    name: str | None
    status: Status
    reason: str
    data: Mapping[str, Any]
    created_at: datetime


class StepState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One node of the running plan. ``key`` is a resource's name while applying, its id while cleaning."""

    stack_id: str
    key: str
    #: Requirements that have not ended yet; 0 means it may run.
    waiting: int
    state: StepState
    definition: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``seq`` orders them; resource events of a stack itself carry the stack's name and id."""

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
