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
import threading
import time
from uuid import uuid4

from stoker.lru_cache import LruCache
from stoker.model.errors import Unauthorized
from stoker.model.relay import Relay
from stoker.store import relays
from stoker.store.notifier import ALL
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
    relays.add(tx, relay)
    return relay, key


def delete(tx: Tx, relay: Relay) -> None:
    """Delete a relay and revoke its key."""
    relays.delete(tx, relay.id)
    tx.notify(relay_topic(relay.id))


class Relays:
    """Validates the keys of relays, and records when each relay was seen."""

    def __init__(self, store: Store, heartbeat: float) -> None:
        """``heartbeat``: seconds between two records of one relay."""
        self._store = store
        self._heartbeat = heartbeat
        self._lock = threading.Lock()
        #: Relay id → the hash of its key, for validated relays.
        self._valid: LruCache[str, str] = LruCache(_REMEMBERED)
        #: Relay id → time of the last record (time.monotonic).
        self._seen: LruCache[str, float] = LruCache(_REMEMBERED)
        #: Number of notifications. A key that was read before a notification must not be cached after it.
        self._notified = 0
        store.notifier.subscribe(self._on_notification, _TOPICS)

    def get_cached(self, key: str) -> str | None:
        """Return the relay's id if the key is cached, without I/O; otherwise None: call ``authenticate``."""
        relay_id = key.partition(".")[0]
        valid = self._valid.get(relay_id)
        return relay_id if valid is not None and hmac.compare_digest(valid, _hash(key)) else None

    def authenticate(self, key: str) -> str:
        """Return the relay's id. Raises Unauthorized for any invalid key."""
        relay_id = key.partition(".")[0]
        notified = self._notified
        with self._store.read() as tx:
            relay = relays.find(tx, relay_id) if "\0" not in relay_id else None
        if relay is None or not hmac.compare_digest(relay.key_hash, _hash(key)):
            raise Unauthorized(_WRONG)
        with self._lock:
            if notified == self._notified:
                self._valid.put(relay_id, relay.key_hash)
        return relay_id

    def is_due(self, relay_id: str) -> bool:
        """Return whether ``record_seen`` has to write. Performs no I/O."""
        last = self._seen.get(relay_id)
        return last is None or last + self._heartbeat < time.monotonic()

    def record_seen(self, relay_id: str, user_agent: str) -> None:
        """Record that the relay was seen. ``user_agent``: its header, ``stoker-relay/<version>``."""
        match = _VERSION.match(user_agent)
        self._store.write(lambda tx: relays.record_seen(tx, relay_id, tx.now, match[1] if match else None))
        self._seen.put(relay_id, time.monotonic())

    def _on_notification(self, topic: str, _: int) -> None:
        with self._lock:
            self._notified += 1
            if topic == ALL:
                self._valid.clear()
            else:
                self._valid.drop(topic.partition("/")[2])


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
