"""Upgrades of agents to the server's version."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class UpgradeStatus(StrEnum):
    """The state of the upgrade of one agent."""

    #: The canaries of the rollout go first.
    WAITING = "WAITING"
    #: The agent's document contains the offer.
    REQUESTED = "REQUESTED"
    #: The new program has passed its self-test.
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    #: The new program had no contact, and the old one runs again.
    ROLLED_BACK = "ROLLED_BACK"
    #: Another agent of the rollout failed first.
    PAUSED = "PAUSED"

    @property
    def is_offered(self) -> bool:
        """Whether the agent's document contains the offer."""
        return self in (UpgradeStatus.REQUESTED, UpgradeStatus.IN_PROGRESS)


class AgentUpgrade(Struct, frozen=True, kw_only=True):
    """The last upgrade of one agent. Upgrades with the same ``rollout_id`` were requested together."""

    server_id: str
    project_id: str
    rollout_id: str
    status: UpgradeStatus
    version: str
    sha256: str
    from_version: str | None
    requested_by: str
    requested_at: datetime
    is_canary: bool = False
    pause_on_failure: bool = False
    reason: str | None = None
