"""
Deployments and their runs.

A deployment joins a config with a server; a signal returns the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

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
    def run(self) -> Run:
        """The current run. Until it ends, it has no result: the deployment still has that of the previous run."""
        fields = {name: getattr(self, name) for name in RunFields.__struct_fields__}
        if self.ended_at is None:
            fields |= {"status_reason": None, "output_values": {}}
        else:
            kept = {name: value for name, value in self.output_values.items() if name not in LOGGED}
            fields["output_values"] = kept
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
