"""Triggers and schedules: run an action or config on servers, on demand or at set times. Rollouts begin on canaries."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from stoker.model.errors import Invalid

#: A number of servers, or a percentage of them such as ``10%``.
Canary = int | str
_PERCENTAGE = re.compile(r"(100|[1-9][0-9]?)%", re.ASCII)


def check_canary(canary: Canary | None) -> None:
    """Raise Invalid for a number or a text that a client cannot mean as a canary."""
    is_number = isinstance(canary, int) and not isinstance(canary, bool) and 0 < canary < 2**31
    if canary is None or is_number or (isinstance(canary, str) and _PERCENTAGE.fullmatch(canary)):
        return
    raise Invalid(f"canary must be a number of servers from 1 on, or a percentage such as 10%, not {canary!r:.100}")


def count_canaries(canary: Canary | None, total: int) -> int:
    """Return the number of canaries among ``total`` servers; 0 if all servers are canaries, or none."""
    number = canary or 0
    if isinstance(number, str):
        number = math.ceil(total * int(number.removesuffix("%")) / 100)
    return number if number < total else 0


class TriggerStatus(StrEnum):
    """The status of a trigger."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class TargetStatus(StrEnum):
    """The status of one target of a trigger."""

    QUEUED = "QUEUED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Stopped(StrEnum):
    """Why a trigger starts no more targets."""

    CANCELLED = "CANCELLED"
    #: More targets have failed than ``max_fail_percentage`` permits.
    FAILURES = "FAILURES"
    #: A canary has not succeeded.
    CANARY = "CANARY"


class Mode(StrEnum):
    """What the runs of a trigger do."""

    APPLY = "APPLY"
    #: The hooks show what they would change, and change nothing.
    PREVIEW = "PREVIEW"


class Options(Struct, frozen=True, kw_only=True):
    """How a trigger runs its targets, and whether it was stopped."""

    mode: Mode = Mode.APPLY
    signal_transport: str | None = None
    #: The timeout of each run, in seconds.
    timeout: float | None = None
    #: The maximum number of concurrent runs; None: no limit.
    max_concurrent: int | None = None
    #: The trigger starts no more targets when more than this percentage has failed.
    max_fail_percentage: float = 100
    #: The servers on which the trigger begins; it starts on the others when all of these have succeeded.
    canary: Canary | None = None
    #: Each server waits for its own maintenance window.
    require_window: bool = False
    #: Names of inputs whose values are secret.
    secret: tuple[str, ...] = ()
    stopped: Stopped | None = None
    #: The user who cancelled the trigger.
    stopped_by: str | None = None
    #: The trigger ends without waiting for its running targets.
    forced: bool = False
    #: The id of a later trigger of the schedule while it replaces the targets that no agent has started.
    replaced_by: str | None = None
    #: Whether a server has several targets, which run one after the other.
    has_blocked: bool = False
    #: The number of targets on the canaries until these have ended: only the first targets may start. 0: all may.
    canary_targets: int = 0


class Trigger(Struct, frozen=True, kw_only=True):
    """A trigger, with the numbers of its targets by status."""

    id: str
    project_id: str
    name: str
    action: str
    #: The source as the request named it, for display.
    source: Mapping[str, Any]
    #: The stack that contains the source, if the source is a resource.
    stack_id: str | None = None
    #: Values that override those of the source's deployments.
    input_values: Mapping[str, Any]
    options: Options
    requested_by: str | None = None
    schedule_id: str | None = None
    status: str = TriggerStatus.IN_PROGRESS
    status_reason: str = ""
    total: int = 0
    queued: int = 0
    running: int = 0
    complete: int = 0
    failed: int = 0
    cancelled: int = 0
    #: The numbers of ended targets whose runs did, or did not, change their servers. Other hooks do not report it.
    changed: int = 0
    unchanged: int = 0
    #: The number of changes of its targets.
    revision: int = 0
    created_at: datetime
    ended_at: datetime | None = None


class Target(Struct, frozen=True, kw_only=True):
    """One deployment of a trigger on one server."""

    trigger_id: str
    position: int
    server_id: str
    server_name: str
    #: The name of the target's deployment.
    name: str
    #: The path of the resource whose deployment the target repeats, such as ``group/web1``; None: there is none.
    resource_name: str | None = None
    #: The values before the trigger's own values override them.
    input_values: Mapping[str, Any]
    #: Whether an earlier target of the server has not ended yet.
    blocked: bool = False
    status: str = TargetStatus.QUEUED
    status_reason: str = ""
    #: Whether the run changed the server; None if that is not known.
    changed: bool | None = None
    deployment_id: str | None = None
    #: The exit code of the run, and the digest of its output (``triggers.output_digest``); None: it reported no code.
    exit_code: str | None = None
    digest: str | None = None
    #: When the status last changed; None: the target has been queued since the trigger was created.
    updated_at: datetime | None = None
    #: The trigger's revision of the target's last change. Greater ones become visible later, because a transaction that
    #: changes a target locks the trigger.
    revision: int = 0


class MisfirePolicy(StrEnum):
    """What happens when a scheduled time passes while no process is running."""

    RUN = "RUN"
    SKIP = "SKIP"


class OverlapPolicy(StrEnum):
    """What happens to the runs of earlier times that no agent has started when the next time comes."""

    #: The run of the next time takes their place, so that a server that was offline runs once.
    REPLACE = "REPLACE"
    #: All of them run, one after the other.
    QUEUE = "QUEUE"


class Schedule(Struct, frozen=True, kw_only=True):
    """Creates triggers, once (``at``) or repeatedly (``cron``)."""

    id: str
    project_id: str
    name: str
    #: The body of a request that creates the trigger.
    body: Mapping[str, Any]
    #: Names of inputs in the body whose values are secret.
    secret: tuple[str, ...] = ()
    #: Five fields, in the time zone; None if ``at`` is set.
    cron: str | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    require_window: bool = False
    misfire_policy: str = MisfirePolicy.RUN
    overlap_policy: str = OverlapPolicy.REPLACE
    enabled: bool = True
    requested_by: str | None = None
    next_at: datetime | None = None
    last_at: datetime | None = None
    last_trigger_id: str | None = None
    #: Why the last scheduled time started no trigger.
    last_error: str | None = None
    #: The number of triggers that the schedule has created, and of times that passed while no process was running.
    run_count: int = 0
    missed_count: int = 0
    created_at: datetime
