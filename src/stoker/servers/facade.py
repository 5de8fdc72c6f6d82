"""The server services that the APIs and ``serve`` use, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.servers.agent_bundle import AgentBundle
from stoker.servers.keys import Keys
from stoker.servers.last_seen import LastSeen
from stoker.servers.local import LocalServers


@dataclass(frozen=True, slots=True)
class Servers:
    """The keys, heartbeats, agent bundle and local servers of one process."""

    keys: Keys
    last_seen: LastSeen
    agent_bundle: AgentBundle
    #: None if local servers are not enabled.
    local: LocalServers | None
