"""Servers: their enrollment, keys and heartbeats, and the local provider."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.servers.agent_bundle import AgentBundle
from stoker.servers.compute import Compute
from stoker.servers.keys import Keys
from stoker.servers.presence import LastSeen
from stoker.servers.relays import Relays


@dataclass(frozen=True, slots=True)
class Servers:
    """The keys, heartbeats, agent bundle, relays and server provider of one process."""

    keys: Keys
    last_seen: LastSeen
    agent_bundle: AgentBundle
    relays: Relays
    #: None if no provider is enabled.
    compute: Compute | None
