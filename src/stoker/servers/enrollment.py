"""Enrollment: an agent exchanges a single-use token for its server's key."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta
from uuid import uuid4

from stoker.model.errors import Conflict, EntityNotFound, Invalid, Unauthorized
from stoker.model.server import Enrollment, Kind, Server
from stoker.servers.keys import Keys, key_topic
from stoker.store import documents, servers
from stoker.store.tx import Tx

TOKEN_LIFE = timedelta(hours=24)
_WRONG = "This enrollment token is not valid, or has been used already: enroll the server again."


def enroll(tx: Tx, project_id: str, name: str) -> tuple[Server, Enrollment, str]:
    """
    Create a server and an enrollment; return both, and the token, which is not stored and cannot be shown again.

    If a stack has one DeployedServer of this name without an agent, the enrollment is for this server. Raises Invalid
    for an invalid name, and Conflict if another enrolled server has the name.
    """
    _check_name(name)
    servers.lock_names(tx, project_id)
    same = servers.find_by_name(tx, name, project_id)
    if any(server.kind is Kind.ENROLLED and server.key_generation for server in same):
        raise Conflict(f"A server named {name!r} is enrolled already: delete it first, or choose another name.")
    waiting = [other for other in same if not other.key_generation and other.kind is not Kind.LOCAL]
    server = waiting[0] if len(waiting) == 1 else None
    if server is None:
        server = Server(id=str(uuid4()), project_id=project_id, name=name, kind=Kind.ENROLLED, created_at=tx.now)
        servers.add(tx, server)
    token = secrets.token_hex(32)  # hexadecimal: other encodings may begin with "-", like an option
    enrollment = Enrollment(token_hash=_hash(token), server_id=server.id, expires_at=tx.now + TOKEN_LIFE)
    servers.drop_enrollments(tx, server.id)
    servers.add_enrollment(tx, enrollment)
    return server, enrollment, token


def redeem_token(tx: Tx, keys: Keys, token: str, instance: str, hostname: str) -> tuple[Server, str]:
    """
    Return the server and its new key. Raises Unauthorized.

    The same ``instance`` may redeem the token again, in case the agent was killed before it stored the key.
    """
    enrollment = servers.enrollment(tx, _hash(token))
    if enrollment is None or enrollment.expires_at <= tx.now or not _may(enrollment, instance):
        raise Unauthorized(_WRONG)
    server = servers.find(tx, enrollment.server_id, for_update=True)
    if server is None:
        raise Unauthorized(_WRONG)
    if enrollment.instance is not None:
        return server, keys.present(server.id, server.key_generation)
    servers.use_enrollment(tx, enrollment.token_hash, instance)
    servers.set_hostname(tx, server.id, hostname)
    return server, keys.issue(tx, server.id)


def find(tx: Tx, project_id: str, named: str) -> Server:
    """Return a server by id or by name. Raises EntityNotFound, and Conflict if several servers have the name."""
    server = servers.find(tx, named)
    if server is not None and server.project_id == project_id:
        return server
    same = servers.find_by_name(tx, named, project_id)
    if len(same) > 1:
        raise Conflict(f"{len(same)} servers are named {named!r}: give the id of one.")
    if not same:
        raise EntityNotFound.of("Server", named)
    return same[0]


def remove(tx: Tx, server: Server) -> None:
    """Delete the server and revoke its keys. Raises Conflict if the server belongs to a stack."""
    if server.stack_id is not None:
        raise Conflict(f"Server {server.name!r} belongs to stack {server.stack_id}: delete it there.")
    forget(tx, server.id)


def forget(tx: Tx, server_id: str) -> None:
    """Delete the server and its document, and revoke its keys."""
    servers.delete(tx, server_id)
    documents.delete(tx, server_id)
    tx.notify(key_topic(server_id))


def _may(enrollment: Enrollment, instance: str) -> bool:
    used_by = enrollment.instance
    return used_by is None or hmac.compare_digest(used_by.encode(), instance.encode("utf-8", "surrogateescape"))


def _check_name(name: str) -> None:
    if not 0 < len(name) < 256 or not name.isprintable() or "/" in name or name != name.strip():
        raise Invalid("a server's name must be 1 to 255 printable characters without '/' and without spaces around it")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
