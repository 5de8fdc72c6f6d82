"""
Relays: their keys and heartbeats.

A key is ``<relay id>.<secret>``; only its hash is stored. Recently validated keys are cached until the relay's topic is
notified.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from uuid import uuid4

from stoker.bounded_dict import BoundedDict
from stoker.model.errors import Unauthorized
from stoker.model.server import Relay
from stoker.servers.keys import KeyCache
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx

_WRONG = "This relay's key is not valid, or has been revoked."
_REMEMBERED = 10_000
_VERSION = re.compile(r"stoker-relay/([\w.+-]{1,64})")


#: The kind of topics of relays.
_TOPICS = "relay"


def relay_topic(relay_id: str) -> str:
    """Return the topic that is notified when the relay is deleted."""
    return f"{_TOPICS}/{relay_id}"


def create(
    tx: Tx, project_id: str, name: str, url: str, *, ca: str | None = None, created_by: str | None = None
) -> tuple[Relay, str]:
    """
    Create a relay. Return it, and its key, which cannot be shown again.

    Raises Conflict if another relay of the project has the name.
    """
    id = str(uuid4())
    key = f"{id}.{secrets.token_hex(32)}"
    relay = Relay(
        id=id,
        project_id=project_id,
        name=name,
        url=url,
        ca=ca,
        key_hash=_hash(key),
        created_at=tx.now,
        created_by=created_by,
    )
    servers.add_relay(tx, relay)
    return relay, key


def delete(tx: Tx, relay: Relay) -> None:
    """Delete a relay and revoke its key."""
    servers.delete_relay(tx, relay.id)
    tx.notify(relay_topic(relay.id))


class Relays:
    """Validates the keys of relays, and records when each relay was seen."""

    def __init__(self, store: Store, heartbeat: float) -> None:
        """``heartbeat``: seconds between two records of one relay."""
        self._store = store
        self._heartbeat = heartbeat
        self._cache = KeyCache(store, _TOPICS, _REMEMBERED)
        #: Returns the relay's id if the key is cached, without I/O; otherwise None: call ``authenticate``.
        self.get_cached = self._cache.find_owner
        #: Relay id → time of the last record (time.monotonic).
        self._seen: BoundedDict[str, float] = BoundedDict(_REMEMBERED)

    def authenticate(self, key: str) -> str:
        """Return the relay's id. Raises Unauthorized for any invalid key."""
        relay_id = key.partition(".")[0]
        notified = self._cache.notified
        with self._store.read() as tx:
            relay = servers.find_relay(tx, relay_id) if "\0" not in relay_id else None
        if relay is None or not hmac.compare_digest(relay.key_hash, _hash(key)):
            raise Unauthorized(_WRONG)
        self._cache.put(key, notified)
        return relay_id

    def is_due(self, relay_id: str) -> bool:
        """Return whether ``record_seen`` has to write. Performs no I/O."""
        last = self._seen.get(relay_id)
        return last is None or last + self._heartbeat < time.monotonic()

    def record_seen(self, relay_id: str, agents: int, user_agent: str) -> None:
        """
        Record that the relay was seen, with this number of agents. ``user_agent``: its header,
        ``stoker-relay/<version>``.
        """
        match = _VERSION.match(user_agent)
        self._store.write(
            lambda tx: servers.update_relay(
                tx, relay_id, last_seen=tx.now, agents=agents, version=match[1] if match else None
            )
        )
        self._seen.put(relay_id, time.monotonic())


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
