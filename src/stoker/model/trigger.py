"""A trigger runs an action on servers, on demand or by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class TriggerStatus(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class TargetStatus(StrEnum):
    QUEUED = "QUEUED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Stopped(StrEnum):
    """Why nothing more of a trigger is begun."""

    CANCELLED = "CANCELLED"
    #: More have failed than may.
    FAILURES = "FAILURES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    signal_transport: str | None = None
    #: Seconds that each run may take.
    timeout: float | None = None
    #: At a time; None: all at once.
    max_concurrent: int | None = None
    #: Nothing more is begun once more than so many of a hundred have failed.
    max_fail_percentage: float = 100
    #: Each server waits for its own maintenance window.
    in_window: bool = False
    #: Names of inputs whose values are nobody's business.
    secret: tuple[str, ...] = ()
    stopped: Stopped | None = None
    #: Who stopped it.
    stopped_by: str | None = None
    #: What is running is not waited for any more.
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is run, as it was when it was triggered: what is begun later is the same."""

    name: str | None
    group: str
    config: Any
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any]
    #: Of a structured deployment: what marks where a value goes; None: nothing is put in place.
    input_key: str | None = None
    #: A value nobody gave is an error.
    strict: bool = False
    #: ``deploy_*`` inputs of the deployment that it is taken from.
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    id: str
    project_id: str
    name: str
    action: str
    #: What was named, as it is shown.
    source: Mapping[str, Any]
    #: The stack whose resource that is, if it is one.
    stack_id: str | None = None
    #: Those that override what the source's deployments have.
    input_values: Mapping[str, Any]
    options: Options
    asked_by: str | None = None
    schedule_id: str | None = None
    status: str = TriggerStatus.IN_PROGRESS
    status_reason: str = ""
    total: int
    queued: int
    running: int = 0
    complete: int = 0
    failed: int = 0
    cancelled: int = 0
    created_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server of a trigger."""

    trigger_id: str
    position: int
    server_id: str
    server_name: str
    #: Of its deployment.
    name: str
    #: Before they are overridden.
    input_values: Mapping[str, Any]
    status: str = TargetStatus.QUEUED
    status_reason: str = ""
    deployment_id: str | None = None


class Missed(StrEnum):
    """What becomes of a time that passed while nobody served."""

    RUN = "RUN"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Triggers at a time, or again and again."""

    id: str
    project_id: str
    name: str
    #: What to trigger, as a request to trigger it says.
    body: Mapping[str, Any]
    #: Names of inputs in it whose values are nobody's business.
    secret: tuple[str, ...] = ()
    #: Five fields, in the time zone; or else ``at``.
    cron: str | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    in_window: bool = False
    missed: str = Missed.RUN
    enabled: bool = True
    asked_by: str | None = None
    next_at: datetime | None = None
    last_at: datetime | None = None
    last_trigger_id: str | None = None
    #: Why the last time began nothing.
    last_error: str | None = None
    #: How often it has begun something, and how many times passed while nobody served.
    times: int = 0
    times_missed: int = 0
    created_at: datetime
