"""
Agent keys: ``<server id>.<secret>``; the secret derives from the site secret, the server's id and a generation.

Keys are not stored. A higher generation revokes all earlier keys. Recently validated keys are cached until
the server's topic is notified.

A key also signs the documents that pass through an object store or a messaging service; ``stoker_agent.signatures``
verifies them. A signed document has one more section, which the upstream agent ignores: the server's id, a revision
that only increases, and an HMAC-SHA256 over the canonical JSON of everything else. A service may therefore reformat the
JSON. The HMAC's key derives from the agent key, so that no other secret has to be distributed or stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

import structlog

from stoker.bounded_dict import BoundedDict
from stoker.model.errors import ApprovalPending, Unauthorized
from stoker.model.server import AgentAccess, Server
from stoker.store import documents, servers
from stoker.store.notifier import ALL
from stoker.store.open import Store
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.servers")

_REMEMBERED = 50_000
#: Servers whose refused keys are logged in one minute at most, each of them once.
_LOGGED_REFUSALS = 100
_LONGEST_ID = 64
_WRONG = "This key is not valid, or has been revoked."


#: The kind of topics of servers' keys.
_TOPICS = "k"


def key_topic(server_id: str) -> str:
    """Return the topic that is notified when the server's keys change or the server is deleted."""
    return f"{_TOPICS}/{server_id}"


class KeyCache:
    """
    The keys that one process has validated lately, until a notification says that they may have changed.

    A key begins with the id of its owner, a server or a relay, and a dot.

    ``topics``: the kind of the owners' topics, which end with the id. ``limit``: keys that are remembered.
    """

    def __init__(self, store: Store, topics: str, limit: int) -> None:
        self._lock = threading.Lock()
        self._valid: BoundedDict[str, bytes] = BoundedDict(limit)
        #: Number of notifications. A key that was read before a notification must not be cached after it.
        self.notified = 0
        store.notifier.subscribe(self._on_notification, topics)

    def find_owner(self, key: str) -> str | None:
        """Return the id of the key's owner if the key is cached, without I/O."""
        owner_id = key.partition(".")[0]
        valid = self._valid.get(owner_id)
        return owner_id if valid is not None and hmac.compare_digest(valid, _bytes(key)) else None

    def put(self, key: str, notified: int) -> None:
        """Remember a valid key, unless a notification came after ``notified``, the number when the key was read."""
        with self._lock:
            if notified == self.notified:
                self._valid.put(key.partition(".")[0], _bytes(key))

    def _on_notification(self, notifications: Mapping[str, int]) -> None:
        with self._lock:
            self.notified += 1
            if ALL in notifications:
                self._valid.clear()
            for topic in notifications:
                self._valid.drop(topic.partition("/")[2])


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key to validate. ``address``: the client's, for the log. ``before_approval``: as in ``Keys.authenticate``."""

    key: str
    address: str = ""
    before_approval: bool = False
    #: The context of the caller, whose variables (the request's id) a log event has.
    context: Context = field(default_factory=copy_context, compare=False, repr=False)

    @property
    def server_id(self) -> str:
        """The id that the key names."""
        return self.key.partition(".")[0]


class Keys:
    """Issues and validates agent keys."""

    def __init__(self, store: Store, site_secret: bytes) -> None:
        self._store = store
        self._site_secret = site_secret
        self._lock = threading.Lock()
        self._cache = KeyCache(store, _TOPICS, _REMEMBERED)
        #: Returns the server's id if the key is cached, without I/O; otherwise None: call ``authenticate``.
        self.get_cached = self._cache.find_owner
        #: The current minute, and the servers whose refused keys were logged in it.
        self._refusals: tuple[int, set[str]] = 0, set()

    def issue(self, tx: Tx, server_id: str) -> str:
        """
        Return a new key for the server; all earlier keys become invalid.

        Raises Unauthorized if the server does not exist.
        """
        server = servers.find(tx, server_id, for_update=True)
        if server is None:
            raise Unauthorized(_WRONG)
        generation = server.key_generation + 1
        servers.change(tx, server_id, key_generation=generation)
        tx.notify(key_topic(server_id))
        if documents.revision(tx, server_id):
            tx.bump_document(server_id)  # published documents are signed with the key
        return self._key(server_id, generation)

    def present(self, server_id: str, generation: int) -> str:
        """
        Return the key of a generation again, for an authorized agent that lost it.

        Generation 0 authenticates no request. It only verifies documents (``servers.signatures``) on machines that boot
        with it and are not enrolled.
        """
        return self._key(server_id, generation)

    def is_present(self, server: Server, key: str) -> bool:
        """Return whether this is the server's present key, which proves that its holder is the server's machine."""
        present = self._key(server.id, server.key_generation)
        return server.key_generation > 0 and hmac.compare_digest(present.encode(), _bytes(key))

    def authenticate(self, key: str, address: str = "", *, before_approval: bool = False) -> str:
        """
        Return the server's id. ``address``: the client's, for the log.

        Raises Unauthorized for any invalid key, and ApprovalPending unless ``before_approval``.
        """
        [result] = self.authenticate_all([KeyRequest(key, address, before_approval)])
        if isinstance(result, BaseException):
            raise result
        return result

    def authenticate_all(self, requests: Sequence[KeyRequest]) -> list[str | BaseException]:
        """Return for each request what ``authenticate`` returns or raises. All keys are read in one transaction."""
        notified = self._cache.notified
        ids = {request.server_id for request in requests if "\0" not in request.server_id}
        with self._store.read() as tx:
            servers.prime(tx, ids)
            by_id = {id: servers.find(tx, id) for id in ids}
        results: list[str | BaseException] = []
        for request in requests:
            try:
                results.append(self._check(request, by_id.get(request.server_id), notified))
            except Unauthorized as error:
                request.context.run(self._log_refusal, request.server_id[:_LONGEST_ID], request.address)
                results.append(error)
            except ApprovalPending as error:
                results.append(error)
        return results

    def _check(self, request: KeyRequest, server: Server | None, notified: int) -> str:
        if server is None or server.agent_access is AgentAccess.LEFT or not self.is_present(server, request.key):
            raise Unauthorized(_WRONG)
        if server.agent_access is AgentAccess.PENDING_APPROVAL:
            if request.before_approval:
                return server.id
            raise ApprovalPending(f"Server {server.name!r} waits for approval: `stoker server approve {server.name}`.")
        self._cache.put(request.key, notified)
        return server.id

    def _log_refusal(self, server_id: str, address: str) -> None:
        minute = int(time.monotonic() // 60)
        with self._lock:
            if self._refusals[0] != minute:
                self._refusals = minute, set()
            logged = self._refusals[1]
            if server_id in logged or len(logged) >= _LOGGED_REFUSALS:
                return
            logged.add(server_id)
        _log.warning("agent_key.refused", server_id=server_id, address=address)

    def _key(self, server_id: str, generation: int) -> str:
        digest = hmac.new(self._site_secret, f"agent:{server_id}:{generation}".encode(), hashlib.sha256).digest()
        return f"{server_id}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _bytes(key: str) -> bytes:
    """Return a key as bytes. A client may send any characters."""
    return key.encode("utf-8", "surrogateescape")


#: Name of the section, and its key for the HMAC in hexadecimal.
SECTION, HMAC = "stoker-signature", "hmac"
_PURPOSE = b"stoker documents"


def sign(document: Mapping[str, Any], *, agent_key: str, server_id: str, revision: int) -> dict[str, Any]:
    """
    Return the document with its signature. ``agent_key``: the server's key (``Keys.present``) of the current
    generation.
    """
    # JSON changes some values, such as tuples and numeric keys. The signature applies to the values that arrive.
    plain = json.loads(json.dumps(document))  # noqa: TID251 — not from outside
    section = {"server_id": server_id, "revision": revision}
    key = hmac.digest(agent_key.encode(), _PURPOSE, hashlib.sha256)
    signature = hmac.new(key, _canonical({**plain, SECTION: section}), hashlib.sha256).hexdigest()
    return {**plain, SECTION: {**section, HMAC: signature}}


def _canonical(value: Any) -> bytes:
    """Return JSON with sorted keys, without blanks, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
