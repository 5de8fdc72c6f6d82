"""
Agents' keys: ``<server id>.<secret>``, the secret derived from the site's own, the server's id and a generation.

Nothing secret is stored; a higher generation revokes every key given out before. What was checked lately is answered
from memory until the server's ring.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading

from stoker.model.errors import Unauthorized
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx

_REMEMBERED = 50_000
_WRONG = "This key is not valid, or no longer."


def key_topic(server_id: str) -> str:
    """Rung when the server's keys changed or the server is gone."""
    return f"k/{server_id}"


class Keys:
    def __init__(self, store: Store, site_secret: bytes) -> None:
        self._store = store
        self._site_secret = site_secret
        self._lock = threading.Lock()
        #: Server id → the one key that is valid now.
        self._valid: dict[str, str] = {}
        #: Counts rings: what was read before one must not be remembered after it.
        self._rings = 0
        store.bell.listen(self._on_ring)

    def issue(self, tx: Tx, server_id: str) -> str:
        """A new key; those given out before are worth nothing from now on."""
        server = servers.find(tx, server_id, hold=True)
        if server is None:
            raise Unauthorized(_WRONG)
        generation = server.key_generation + 1
        servers.set_key_generation(tx, server_id, generation)
        tx.ring(key_topic(server_id))
        return self._key(server_id, generation)

    def present(self, server_id: str, generation: int) -> str:
        """The key of that generation once more, for who may have it and lost it."""
        return self._key(server_id, generation)

    def known(self, key: str) -> str | None:
        """The server's id, without I/O; None: ask ``authenticate``."""
        server_id = key.partition(".")[0]
        valid = self._valid.get(server_id)
        return server_id if valid is not None and hmac.compare_digest(valid.encode(), _bytes(key)) else None

    def authenticate(self, key: str) -> str:
        """The server's id. Raises Unauthorized, whatever is wrong."""
        server_id = key.partition(".")[0]
        rings = self._rings
        with self._store.read() as tx:
            server = servers.find(tx, server_id) if "\0" not in server_id else None
        if server is None or not server.key_generation:
            raise Unauthorized(_WRONG)
        valid = self._key(server_id, server.key_generation)
        if not hmac.compare_digest(valid.encode(), _bytes(key)):
            raise Unauthorized(_WRONG)
        with self._lock:
            if len(self._valid) >= _REMEMBERED:
                self._valid.clear()
            if rings == self._rings:
                self._valid[server_id] = valid
        return server_id

    def _key(self, server_id: str, generation: int) -> str:
        digest = hmac.new(self._site_secret, f"agent:{server_id}:{generation}".encode(), hashlib.sha256).digest()
        return f"{server_id}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    def _on_ring(self, topic: str, _: int) -> None:
        with self._lock:
            if topic == "*":
                self._rings += 1
                self._valid.clear()
            elif topic.startswith("k/"):
                self._rings += 1
                self._valid.pop(topic[2:], None)


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")
