"""A server: something an agent runs on, or a stand-in for it in a stack."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

#: An agent polls at least once a minute; after two it is missing.
SILENT_AFTER = timedelta(seconds=120)


class Kind(StrEnum):
    ENROLLED = "enrolled"
    LOCAL = "local"
    DEPLOYED = "deployed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    id: str
    project_id: str
    name: str
    kind: Kind
    created_at: datetime
    stack_id: str | None = None
    resource_id: str | None = None
    resource_name: str | None = None
    #: Counts the keys given out; raising it revokes the older ones. 0: none given yet.
    key_generation: int = 0
    last_seen: datetime | None = None
    agent_version: str | None = None
    hooks: tuple[str, ...] = ()
    hostname: str | None = None

    def status(self, now: datetime) -> str:
        if self.last_seen is not None:
            return "ONLINE" if now - self.last_seen < SILENT_AFTER else "OFFLINE"
        return "ENROLLING" if self.kind is Kind.ENROLLED and not self.key_generation else "NEVER_SEEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A single-use token that an agent trades for its key."""

    token_hash: str
    server_id: str
    expires_at: datetime
    #: Chosen by the agent before it asks: the same agent may ask again after a crash, another may not.
    instance: str | None = None
