"""Relays: programs at remote sites that pass the requests of the site's agents on to Stoker."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Relay(Struct, frozen=True, kw_only=True):
    """A relay, as a user of the project has created it."""

    id: str
    project_id: str
    name: str
    #: Where the site's agents reach the relay.
    url: str
    #: The certificates, in PEM, with which agents verify the relay; None: those that their machines trust.
    ca: str | None = None
    #: SHA-256 of the key; the key itself is not stored.
    key_hash: str
    created_at: datetime
    created_by: str | None = None
    last_seen: datetime | None = None
    #: The agents that it served then.
    agents: int = 0
    #: The version of the relay's program.
    version: str | None = None
