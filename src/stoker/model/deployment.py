"""A deployment joins a config with a server; a signal brings its result back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


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


@dataclass(frozen=True, slots=True)
class Signal:
    """What an agent reports after running one deployment (``deploy_stdout``, …, and the outputs)."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """The last thing an agent said of a run that has not ended."""

    state: str
    percent: int | None
    message: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class LogChunk:
    """``offset`` counts bytes of the stream; ``data`` is text, undecodable bytes replaced."""

    seq: int
    config_id: str
    stream: str
    offset: int
    data: str
    at: datetime
