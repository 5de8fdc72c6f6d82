"""
Deployments, their runs and checks, and what advances when a transaction ends: owners of runs and of other things that
they wait for, and the causes.

A deployment joins a config with a server; a signal returns the result. A check compares the server with it later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from stoker.model.errors import Invalid
from stoker.model.stack import Status

#: A run without a heartbeat for this time is UNRESPONSIVE. Agents send three heartbeats in this time.
UNRESPONSIVE_AFTER = timedelta(seconds=45)
#: The transport of Stoker's own agents: the only one that acknowledges documents and allows a run to be cancelled.
OWN_CHANNEL = "STOKER_PUSH"
#: Modes of a run in which the hook does not apply the config: it shows what it would change, or removes what earlier
#: runs made.
PREVIEW, UNDO = "preview", "undo"
#: Values of ``held_by``, the reason why no document contains a deployment: it waits for the maintenance window of its
#: server, it must not run any more, or the machine that ran it was replaced.
WINDOW, CANCELLED, INTERRUPTED = "WINDOW", "CANCELLED", "INTERRUPTED"

#: Values of a result that are stored in the log, or as columns of the run.
LOGGED = ("deploy_stdout", "deploy_stderr", "deploy_run_seconds")


class RunFields(Struct, frozen=True, kw_only=True):
    """
    The fields that a deployment has for its current run, and each of its earlier runs. ``action`` and ``status`` are
    free text in Heat's API, so they are not enums.
    """

    #: The derived config, which contains the input values. Every run has a new one.
    config_id: str
    action: str | None
    status: str | None
    status_reason: str | None = None
    input_values: Mapping[str, Any]
    output_values: Mapping[str, Any]
    #: What the hook does in the run: PREVIEW or UNDO; None: it applies the config.
    mode: str | None = None
    #: Whether the run changed the server; None if the run has not ended, or its hook does not report it.
    changed: bool | None = None
    #: What the run changed: maps with ``item``, ``outcome`` and ``diff``.
    changes: tuple[Mapping[str, Any], ...] = ()
    #: The stored state. UNRESPONSIVE is never stored: ``Run.state_at`` computes it from the time.
    state: str = "QUEUED"
    #: When a document with this run was sent or published. The agent may have started the run since then.
    sent_at: datetime | None = None
    #: The transport that delivered the run.
    channel: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    #: The agent's last report of progress; ``last_heartbeat_at`` is the time of its last sign of life.
    percent: int | None = None
    message: str | None = None
    last_heartbeat_at: datetime | None = None
    status_code: str | None = None
    #: None: the action of a stack started the run.
    requested_by: str | None = None
    #: Bytes of output that the run has written, stored or not.
    stdout_bytes: int = 0
    stderr_bytes: int = 0


class Owner(NamedTuple):
    """A resource or a trigger, by ``Owner.resource`` or ``Owner.trigger``. Owners are woken in their order."""

    kind: str
    id: str

    @staticmethod
    def resource(id: str) -> Owner:
        """Return the resource with this id."""
        return Owner("resource", id)

    @staticmethod
    def trigger(id: str) -> Owner:
        """Return the trigger with this id."""
        return Owner("trigger", id)


class Deployment(RunFields, frozen=True, kw_only=True):
    """A config joined with a server and input values. The fields of ``RunFields`` are those of its current run."""

    id: str
    project_id: str
    server_id: str
    created_at: datetime
    updated_at: datetime | None = None
    #: How the agent reports its result. None: no report is expected, so the entry stays in the agent's document.
    signal_transport: str | None = None
    #: The stack resource that the deployment belongs to, if any.
    resource_id: str | None = None
    stack_id: str | None = None
    #: The trigger that started the deployment, if any.
    trigger_id: str | None = None
    #: WINDOW, CANCELLED, INTERRUPTED, or None: documents contain the deployment.
    held_by: str | None = None
    #: The agent has to stop the run and has not confirmed the stop yet.
    cancelling: bool = False
    #: The server belongs to another project, whose policy admits this deployment.
    admitted: bool = False
    #: A client has deleted the deployment, which disappears when its run has undone it.
    removing: bool = False
    #: The number of items that the last run changed; 0 if its hook does not list them.
    changed_items: int = 0
    #: The number of the current run, and when it was requested.
    run_number: int = 1
    queued_at: datetime | None = None
    #: The last bytes of each stream that may be the beginning of a secret: no chunk contains them yet.
    stdout_held: bytes | None = None
    stderr_held: bytes | None = None

    @property
    def has_ended(self) -> bool:
        """
        Whether the status is COMPLETE or FAILED. A deployment without a status never started, so it has not ended.
        """
        return self.status in (Status.COMPLETE, Status.FAILED)

    @property
    def is_of_client(self) -> bool:
        """Whether a client created the deployment, and neither a stack nor a trigger."""
        return self.resource_id is None and self.trigger_id is None

    @property
    def owner(self) -> Owner | None:
        """The resource or the trigger that is told of the runs' ends; None for a client's deployment."""
        if self.resource_id is not None:
            return Owner.resource(self.resource_id)
        return Owner.trigger(self.trigger_id) if self.trigger_id is not None else None

    @property
    def run(self) -> Run:
        """The current run. Until it ends, it has no outputs: the deployment still has those of the previous run."""
        fields = {name: getattr(self, name) for name in RunFields.__struct_fields__}
        outputs = {} if self.ended_at is None else self.output_values
        fields["output_values"] = {name: value for name, value in outputs.items() if name not in LOGGED}
        return Run(deployment_id=self.id, number=self.run_number, queued_at=self.queued_at or self.created_at, **fields)

    @property
    def change_summary(self) -> str | None:
        """What the last run changed or would change, such as ``changed 3 items``; None if that is not known."""
        if self.changed is None:
            return None
        verb = "would change" if self.mode == PREVIEW else "changed"
        if not self.changed:
            return f"nothing {verb}"
        items = f" {self.changed_items} item{'' if self.changed_items == 1 else 's'}" if self.changed_items else ""
        return verb + items


class RunState(StrEnum):
    """The last known state of a run."""

    PENDING_WINDOW = "PENDING_WINDOW"
    QUEUED = "QUEUED"
    DELIVERED = "DELIVERED"
    RUNNING = "RUNNING"
    UNRESPONSIVE = "UNRESPONSIVE"
    CANCELLING = "CANCELLING"
    DONE = "DONE"


class Run(RunFields, frozen=True, kw_only=True):
    """One execution of a deployment, from the request to the result."""

    deployment_id: str
    number: int
    queued_at: datetime

    @property
    def delivered_at(self) -> datetime | None:
        """When the run was sent, or None until the agent has acknowledged it."""
        return None if self.state in (RunState.PENDING_WINDOW, RunState.QUEUED) else self.sent_at

    def unresponsive_for(self, now: datetime) -> timedelta | None:
        """
        Return the time since the last heartbeat, or None if it is shorter than ``UNRESPONSIVE_AFTER`` or the run is not
        in progress.
        """
        if self.started_at is None or self.ended_at is not None:
            return None
        silence = now - (self.last_heartbeat_at or self.started_at)
        return silence if silence >= UNRESPONSIVE_AFTER else None

    def state_at(self, now: datetime) -> str:
        """Return the state at the time ``now``: the stored state, or UNRESPONSIVE."""
        return RunState.UNRESPONSIVE if self.unresponsive_for(now) else self.state


@dataclass(frozen=True, slots=True)
class LogChunk:
    """
    A part of a run's output. ``offset`` and ``size`` count bytes of the stream; ``data`` is text in which undecodable
    bytes are replaced.
    """

    seq: int
    config_id: str
    stream: str
    offset: int
    size: int
    data: str
    at: datetime


#: Names of the options of a config, and of the properties of a deployment.
INTERVAL, ENFORCE = "check_interval", "enforce"
#: The mode of hooks and agents that can check.
CHECK = "check"
#: Limits of the interval in seconds: the longest is 30 days.
SHORTEST_INTERVAL, LONGEST_INTERVAL = 5, 30 * 24 * 3600


class CheckState(StrEnum):
    """The result of the last check of a deployment."""

    IN_SYNC = "IN_SYNC"
    DRIFTED = "DRIFTED"
    UNKNOWN = "UNKNOWN"
    #: The config has no check, or its hook supports none.
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How a deployment is checked. None: not set."""

    #: Seconds between two checks by the agent's own timer.
    interval: int | None = None
    #: Whether drift starts another run.
    enforce: bool | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CheckSettings:
        """Return the settings in the options of a config, or in the properties of a deployment. Raises Invalid."""
        interval, enforce = values.get(INTERVAL), values.get(ENFORCE)
        if enforce is not None and not isinstance(enforce, bool):
            raise Invalid(f"the option {ENFORCE} must be true or false, not {enforce!r:.100}")
        if interval is None:
            return cls(None, enforce)
        is_number = isinstance(interval, int | float) and not isinstance(interval, bool)
        if not is_number or not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
            raise Invalid(
                f"the option {INTERVAL} must be {SHORTEST_INTERVAL} to {LONGEST_INTERVAL} seconds,"
                f" not {interval!r:.100}"
            )
        return cls(int(interval), enforce)

    def over(self, other: CheckSettings) -> CheckSettings:
        """Return these settings, and those of ``other`` that are not set here."""
        return CheckSettings(
            other.interval if self.interval is None else self.interval,
            other.enforce if self.enforce is None else self.enforce,
        )


class Check(Struct, frozen=True, kw_only=True):
    """The checks of one deployment: their settings, and the last result."""

    deployment_id: str
    server_id: str
    #: The derived config that the result is about.
    config_id: str
    #: Seconds between two checks; None: checks run on request only.
    check_interval: int | None = None
    enforce: bool = False
    state: CheckState = CheckState.UNKNOWN
    #: Since when the deployment has the state.
    since: datetime
    #: When the agent last reported a result; agents report only changes, and requested checks.
    checked_at: datetime | None = None
    #: When a user requested the check that the agent has not answered yet.
    requested_at: datetime | None = None
    #: When the drift began that has not ended yet. A run in between does not end the drift, a check in sync does.
    drifted_at: datetime | None = None
    reason: str = ""
    #: The differences: maps with ``item``, ``outcome`` and ``diff``.
    changes: tuple[Mapping[str, Any], ...] = ()
    #: The number of remediations that did not end the drift, or ended it for a short time only.
    remediations: int = 0
    #: No remediation starts before this time.
    remediate_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What the owner waits for exists. ``failure``: why it cannot exist."""

    failure: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has ended. ``was_cancelling``: its agent was instructed to stop it before."""

    deployment: Deployment
    was_cancelling: bool = False


@dataclass(frozen=True, slots=True)
class RunRestarted:
    """A deployment that had ended runs again. The run may have ended already."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class Removed:
    """A client has removed a deployment, which is as it was before."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class DriftChanged:
    """Drift of a deployment has begun (``check.drifted_at`` is set) or ended."""

    check: Check


Cause = Settled | RunEnded | RunRestarted | Removed | DriftChanged
