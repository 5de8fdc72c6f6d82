"""A deployment joins a config with a server; a signal brings its result back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

#: A run whose agent says nothing for so long is silent; agents say something three times as often.
SILENT_AFTER = timedelta(seconds=45)
#: Why a deployment is in no document: it waits for its server's maintenance window, or is not to run any more.
WINDOW, CANCELLED = "WINDOW", "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """``action`` and ``status`` are free text on Heat's API, hence not the enums."""

    id: str
    project_id: str
    server_id: str
    #: The derived config: inputs merged, ready for the agent. A new one for every action.
    config_id: str
    action: str | None
    status: str | None
    status_reason: str | None
    input_values: Mapping[str, Any]
    output_values: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime | None = None
    #: Whether the agent is expected to report; without, its entry stays in the agent's document.
    signal_transport: str | None = None
    #: The stack resource this deployment is, if it is one.
    resource_id: str | None = None
    stack_id: str | None = None
    #: The trigger that began it, if one did.
    trigger_id: str | None = None
    #: WINDOW, CANCELLED, or None: agents are told of it.
    withheld: str | None = None
    #: Its agent is to be told to stop the run, and has not said that it did.
    cancelling: bool = False
    #: The server is another project's, whose policy lets this in.
    admitted: bool = False


@dataclass(frozen=True, slots=True)
class Signal:
    """What an agent reports after running one deployment (``deploy_stdout``, …, and the outputs)."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """What an agent says of a run that goes on."""

    state: str
    percent: int | None
    message: str | None
    at: datetime


class RunState(StrEnum):
    """How far a run is, as far as is known. What agents say of RUNNING ones may be any word of theirs."""

    HELD = "HELD"
    WAITING = "WAITING"
    DELIVERED = "DELIVERED"
    RUNNING = "RUNNING"
    SILENT = "SILENT"
    CANCELLING = "CANCELLING"
    DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One action of a deployment, from when it was asked for to what came of it."""

    deployment_id: str
    #: The derived config that it runs.
    config_id: str
    number: int
    action: str | None
    #: As it is stored: never SILENT, which time alone makes of it (``state_at``).
    state: str
    queued_at: datetime
    percent: int | None = None
    message: str | None = None
    #: When the agent last said anything of it.
    heard_at: datetime | None = None
    delivered_at: datetime | None = None
    #: The transport that it was delivered by.
    channel: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    status: str | None = None
    status_code: str | None = None
    status_reason: str | None = None
    #: None: a stack's action did.
    asked_by: str | None = None
    input_values: Mapping[str, Any]
    output_values: Mapping[str, Any]
    stdout_bytes: int = 0
    stderr_bytes: int = 0

    def silent_for(self, now: datetime) -> timedelta | None:
        """How long nothing has been heard of it, once that is too long."""
        if self.started_at is None or self.ended_at is not None:
            return None
        silence = now - (self.heard_at or self.started_at)
        return silence if silence >= SILENT_AFTER else None

    def state_at(self, now: datetime) -> str:
        return RunState.SILENT if self.silent_for(now) else self.state


@dataclass(frozen=True, slots=True)
class LogChunk:
    """``offset`` and ``size`` count bytes of the stream; ``data`` is text, undecodable bytes replaced."""

    seq: int
    config_id: str
    stream: str
    offset: int
    size: int
    data: str
    at: datetime
