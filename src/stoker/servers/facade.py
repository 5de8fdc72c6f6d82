"""All of this room that faces and ``serve`` use, in one hand."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.servers.keys import Keys
from stoker.servers.local import LocalServers
from stoker.servers.presence import Presence
from stoker.servers.program import Program


@dataclass(frozen=True, slots=True)
class Servers:
    keys: Keys
    presence: Presence
    program: Program
    #: None where local servers are not enabled.
    local: LocalServers | None
