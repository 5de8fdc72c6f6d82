"""Servers: machines or processes with an agent, or the resources that represent them in a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

#: The value of a server's ``agent`` for Stoker's own agent.
OWN_AGENT = "stoker"
#: The maximum length of a server's id, in characters.
LONGEST_ID = 36


class Kind(StrEnum):
    """How a server came to be known: enrolled by its agent, a local process, or a server resource of a stack."""

    ENROLLED = "enrolled"
    LOCAL = "local"
    DEPLOYED = "deployed"


@dataclass(frozen=True, slots=True)
class Owner:
    """The stack resource that owns a server."""

    stack_id: str
    resource_id: str
    resource_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server, which runs configs."""

    id: str
    project_id: str
    name: str
    kind: Kind
    created_at: datetime
    stack_id: str | None = None
    resource_id: str | None = None
    resource_name: str | None = None
    #: The number of issued keys; an increment revokes the older keys. 0: no key was issued.
    key_generation: int = 0
    last_seen: datetime | None = None
    #: The agent on the server, as its resource declares it; None: the default of the server's kind.
    agent: str | None = None
    agent_version: str | None = None
    hooks: tuple[str, ...] = ()
    hostname: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: In the form that ``deployments.policy`` reads; None: the default policy of the site.
    policy: Mapping[str, Any] | None = None
    #: Of an enrolled server: the resources that represent it, each by its id with the id of the root stack of its tree.
    stands_for: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_channel(self) -> bool:
        """
        Whether the server's agent is Stoker's own and polls Stoker with a key.

        This includes an agent that was enrolled for a waiting server resource.
        """
        return self.kind is not Kind.DEPLOYED or self.key_generation > 0

    @property
    def has_own_agent(self) -> bool:
        """Whether the server runs Stoker's own agent, as far as its resource declares it."""
        if self.kind is Kind.ENROLLED or self.agent is None:
            return self.has_channel
        return self.agent == OWN_AGENT

    def status(self, now: datetime, offline_after: timedelta) -> str:
        """
        Return ONLINE, OFFLINE, ENROLLING or NEVER_SEEN at the time ``now``.

        ``offline_after`` is the time without a heartbeat after which the agent is considered offline.
        """
        if self.last_seen is not None:
            return "ONLINE" if now - self.last_seen < offline_after else "OFFLINE"
        return "ENROLLING" if self.kind is Kind.ENROLLED and not self.key_generation else "NEVER_SEEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrollment:
    """A single-use token that an agent exchanges for its key."""

    token_hash: str
    server_id: str
    expires_at: datetime
    #: Chosen by the agent before its first request. Only the same agent may repeat the request, such as after a crash.
    instance: str | None = None
