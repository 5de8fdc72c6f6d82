"""A server: something an agent runs on, or a stand-in for it in a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

#: An agent polls at least once a minute; after two it is missing.
SILENT_AFTER = timedelta(seconds=120)
#: What a server's ``agent`` is called where it is ours.
OWN_AGENT = "stoker"


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
    #: Which agent runs there, as its resource says; None: that of its kind.
    agent: str | None = None
    agent_version: str | None = None
    hooks: tuple[str, ...] = ()
    hostname: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: As ``deployments.policy`` reads it; None: the site's default.
    policy: Mapping[str, Any] | None = None
    #: Of an enrolled one: the resources that stand for it, by id, each with the id of the stack at the top of its tree.
    stands_for: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_channel(self) -> bool:
        """Its agent is ours and asks Stoker itself, with a key: also one that was enrolled where a resource waited."""
        return self.kind is not Kind.DEPLOYED or self.key_generation > 0

    @property
    def has_own_agent(self) -> bool:
        """It is ours that runs there, as far as anybody said."""
        if self.kind is Kind.ENROLLED or self.agent is None:
            return self.has_channel
        return self.agent == OWN_AGENT

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
