"""
Enrollment: tokens that agents exchange for the keys of servers (``redemption``), and the approval of servers that
enrolled with a token for many machines, and of names that they chose.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.model.server import AgentAccess, Enrollment, Kind, Server
from stoker.servers.keys import key_topic
from stoker.store import documents, resources, servers, stacks
from stoker.store.tx import Tx

TOKEN_LIFE = timedelta(hours=24)
#: Expired enrollments are listed for this time.
_LISTED = timedelta(days=30)
#: Characters of paths, and of the command line's patterns for names.
_REFUSED = frozenset("/*?[")


def enroll(
    tx: Tx,
    project_id: str,
    name: str,
    *,
    lifetime: timedelta = TOKEN_LIFE,
    created_by: str | None = None,
    again: bool = False,
    reruns: bool = False,
) -> tuple[Server, Enrollment, str]:
    """
    Create a server and an enrollment; return both, and the token, which is not stored and cannot be shown again.

    If a stack has one DeployedServer of this name without an agent, the enrollment is for this server. With ``again``,
    it is for the server of this name or id, whose machine loses its key when another redeems the token. ``reruns``:
    the new machine runs everything again. Raises Invalid for an invalid name, EntityNotFound, and Conflict if another
    enrolled server has the name.
    """
    servers.lock_names(tx, project_id)
    server = _enrolled(tx, project_id, name) if again else _new(tx, project_id, name)
    servers.drop_enrollments(tx, server.id)
    enrollment, token = _issue(tx, project_id, created_by, lifetime, server_id=server.id, reruns=reruns)
    return server, enrollment, token


def enroll_many(
    tx: Tx,
    project_id: str,
    *,
    limit: int,
    lifetime: timedelta = TOKEN_LIFE,
    created_by: str | None = None,
    labels: Mapping[str, str],
    **terms: Any,
) -> tuple[Enrollment, str]:
    """
    Create an enrollment with which up to ``limit`` machines become servers. Return it, and the token.

    ``terms`` are further fields of ``Enrollment``: ``name_from``, ``names``, ``needs_approval``.
    """
    return _issue(tx, project_id, created_by, lifetime, limit=limit, labels=labels, **terms)


def hash_token(token: str) -> str:
    """Return the form in which a token is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def find(tx: Tx, project_id: str, named: str) -> Server:
    """Return a server by id or by name, as ``find_all`` does."""
    return find_all(tx, project_id, [named])[0]


def find_all(tx: Tx, project_id: str, named: Collection[str]) -> list[Server]:
    """Return servers by id or by name. Raises EntityNotFound, and Conflict if several servers have one of the names."""
    by_id = {id: server for id, server in servers.find_several(tx, named).items() if server.project_id == project_id}
    by_name: dict[str, list[Server]] = {}
    if names := set(named) - by_id.keys():
        for server in servers.find_by_names(tx, names, project_id):
            by_name.setdefault(server.name, []).append(server)
    return [by_id.get(ref) or _only_one(ref, by_name.get(ref, ())) for ref in named]


def _only_one(name: str, same: Sequence[Server]) -> Server:
    if len(same) > 1:
        raise Conflict(f"{len(same)} servers are named {name!r}: give the id of one.")
    if not same:
        raise EntityNotFound.of("Server", name)
    return same[0]


def remove(tx: Tx, server: Server) -> None:
    """Delete the server and revoke its keys. Raises Conflict if a stack owns or represents the server."""
    if server.stack_id is not None:
        raise Conflict(f"Server {server.name!r} belongs to stack {server.stack_id}: delete it there.")
    for id in server.stands_for:
        resource = resources.find(tx, id)
        stack = stacks.find(tx, resource.stack_id) if resource is not None else None
        if resource is not None and stack is not None:
            raise Conflict(
                f"The resource {resource.name} of stack {stack.name} represents server {server.name!r}: remove the"
                " resource from the stack first, or enroll another machine in the server's place"
                f" (`stoker server enroll {server.name} --again`)."
            )
    forget(tx, server.id)


def require_pending(server: Server) -> None:
    """Raise Conflict if the server does not wait for approval."""
    if server.agent_access is not AgentAccess.PENDING_APPROVAL:
        raise Conflict(f"Server {server.name!r} does not wait for approval.")


def approve(tx: Tx, server: Server, ref: str) -> Server:
    """
    Let the server's agent use its key. Return the server.

    ``ref`` is how the user refers to the server. If it is the server's name, stacks may use the name from now on.
    Raises Conflict if there is nothing to approve.
    """
    confirms = server.is_self_named and ref == server.name
    if not confirms:
        require_pending(server)
    if confirms:
        servers.change(tx, server.id, is_self_named=False)
        server = replace(server, is_self_named=False)
    if server.agent_access is AgentAccess.PENDING_APPROVAL:
        servers.change(tx, server.id, agent_access=AgentAccess.ALLOWED)
        tx.notify(key_topic(server.id))  # wakes the agent, which waits for this
        server = replace(server, agent_access=AgentAccess.ALLOWED)
    return server


def leave(tx: Tx, server: Server) -> bool:
    """
    Revoke the key of a server whose agent was removed from its machine. Return whether the server was deleted.

    A server that a stack owns or represents stays, so that another machine can take its place. Raises Conflict for a
    local server.
    """
    if server.kind is Kind.LOCAL:
        raise Conflict(f"Server {server.name!r} is a local server: its agent ends with it.")
    if server.stack_id is None and not server.stands_for:
        forget(tx, server.id)
        return True
    servers.change(tx, server.id, agent_access=AgentAccess.LEFT)
    tx.notify(key_topic(server.id))
    return False


def forget(tx: Tx, server_id: str) -> None:
    """Delete the server and its document, and revoke its keys."""
    servers.delete(tx, server_id)
    documents.delete(tx, server_id)
    tx.notify(key_topic(server_id))


def _is_in_use(server: Server) -> bool:
    """Whether a machine has the server's key."""
    return server.key_generation > 0 and server.agent_access is not AgentAccess.LEFT


def _new(tx: Tx, project_id: str, name: str) -> Server:
    check_name(name)
    same = servers.find_by_name(tx, name, project_id)
    if any(server.kind is Kind.ENROLLED and _is_in_use(server) for server in same):
        raise Conflict(
            f"A server named {name!r} is enrolled already: delete it first, choose another name,"
            " or enroll it again for another machine (--again)."
        )
    waiting = [other for other in same if not _is_in_use(other) and other.kind is not Kind.LOCAL]
    if len(waiting) == 1:
        return waiting[0]
    server = Server(id=str(uuid4()), project_id=project_id, name=name, kind=Kind.ENROLLED, created_at=tx.now)
    servers.add(tx, server)
    return server


def _enrolled(tx: Tx, project_id: str, named: str) -> Server:
    server = find(tx, project_id, named)
    if server.kind is Kind.LOCAL:
        raise Conflict(f"Server {server.name!r} is a local server: no machine can take its place.")
    return server


def _issue(
    tx: Tx, project_id: str, created_by: str | None, lifetime: timedelta, **values: Any
) -> tuple[Enrollment, str]:
    servers.drop_expired_enrollments(tx, project_id, tx.now - _LISTED)
    token = secrets.token_hex(32)  # hexadecimal: other encodings may begin with "-", like an option
    enrollment = Enrollment(
        id=str(uuid4()),
        project_id=project_id,
        token_hash=hash_token(token),
        created_at=tx.now,
        created_by=created_by,
        expires_at=tx.now + lifetime,
        **values,
    )
    servers.add_enrollment(tx, enrollment)
    return enrollment, token


def check_name(name: str) -> None:
    """Raises Invalid if a server cannot have this name. One such as ``web*`` would be a pattern for names."""
    if not 0 < len(name) < 256 or not name.isprintable() or not _REFUSED.isdisjoint(name) or name != name.strip():
        raise Invalid("a server's name must be 1 to 255 printable characters, none of / * ? [, without spaces around")
