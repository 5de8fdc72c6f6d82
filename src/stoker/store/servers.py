"""Queries for servers and enrollments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.labels import match
from stoker.model.server import Enrollment, Kind, Server
from stoker.store import rows, statements
from stoker.store.repository import Repository, require
from stoker.store.schema import enrollments, servers
from stoker.store.tx import Tx

_SERVERS = Repository(Server, servers)
_NAMED = _SERVERS.by("project_id", "name")
_LIST = _SERVERS.by("project_id").order_by(servers.c.created_at)
_LABELLED = (
    _SERVERS.by("project_id")
    .add_columns(servers.c.labels.label("matched"))
    .where(servers.c.labels != "{}")
    .order_by(servers.c.name, servers.c.id)
)
_OF_KIND = _SERVERS.by("kind")
_POLICY_OF = sa.select(servers.c.policy).where(*statements.equal(servers, "id"))
_SET_SEEN = statements.update(servers, "last_seen", "agent_version", "hooks")
_SET = {
    name: statements.update(servers, name)
    for name in ("name", "key_generation", "agent", "hostname", "labels", "policy", "stands_for")
}
_RELINK = statements.update(servers, "stack_id", "resource_id", "resource_name")
_DISOWN = (
    sa.update(servers)
    .where(servers.c.id == sa.bindparam("key_id"), servers.c.resource_id == sa.bindparam("key_resource_id"))
    .values(stack_id=None, resource_id=None, resource_name=None)
)
_ENROLLMENTS = Repository(Enrollment, enrollments, key=("token_hash",))
_USE = statements.update(enrollments, "instance", key=("token_hash",))
_DROP_ENROLLMENTS = statements.delete(enrollments, "server_id")


def lock_names(tx: Tx, project_id: str) -> None:
    """Lock the names of servers in the project until the transaction ends, so that no other server is enrolled."""
    tx.advisory_lock(f"servers of {project_id}")


def concurrency(tx: Tx, id: str) -> int:
    """Return the number of runs that the server may run at a time: the policy's value, else 1."""
    stored = tx.scalar(_POLICY_OF, {"id": id})
    policy = rows.load(stored) if stored else {}
    most = policy.get("max_concurrent_runs") if isinstance(policy, dict) else None
    return most if isinstance(most, int) and most >= 1 else 1


def add(tx: Tx, new: Server) -> None:
    """Insert a server."""
    _SERVERS.add(tx, new)
    tx.record_labels(new.project_id, {}, new.labels)


def find(tx: Tx, id: str, *, for_update: bool = False) -> Server | None:
    """Return the server with this id, of any project, or None; ``for_update`` locks its row."""
    return _SERVERS.find(tx, id, for_update=for_update)


def get(tx: Tx, id: str, project_id: str) -> Server:
    """Return the project's server. Raises EntityNotFound."""
    return require(find(tx, id), "Server", id, project_id)


def find_by_name(tx: Tx, name: str, project_id: str) -> list[Server]:
    """Return the project's servers with this name. Servers of stacks may share a name; enrolled servers may not."""
    return _SERVERS.all(tx, _NAMED, {"project_id": project_id, "name": name})


def list_all(tx: Tx, project_id: str) -> list[Server]:
    """Return the project's servers, oldest first."""
    return _SERVERS.all(tx, _LIST, {"project_id": project_id})


def find_by_labels(tx: Tx, project_id: str, labels: Mapping[str, str]) -> list[Server]:
    """Return the project's servers that have all of these labels, sorted by name; none if ``labels`` is empty."""
    if not labels:
        return []
    labelled = tx.fetch_all(_LABELLED, {"project_id": project_id})
    matching = (row for row in labelled if match(rows.load(row[-1]), labels))
    return [_SERVERS.decode(row, tx.secrets) for row in matching]


def of_kind(tx: Tx, kind: Kind) -> list[Server]:
    """Return all servers of this kind, of all projects."""
    return _SERVERS.all(tx, _OF_KIND, {"kind": kind.value})


def rename(tx: Tx, id: str, name: str) -> None:
    """Set the server's name."""
    _set(tx, id, "name", name)


def set_key_generation(tx: Tx, id: str, generation: int) -> None:
    """Set the number of keys that the server was issued, which revokes the older keys."""
    _set(tx, id, "key_generation", generation)


def record_seen(tx: Tx, id: str, at: datetime, version: str | None, hooks: tuple[str, ...]) -> None:
    """Record the time of the agent's last heartbeat, its version and its hooks."""
    values = {"last_seen": rows.to_micros(at), "agent_version": version, "hooks": rows.dump(hooks)}
    tx.execute_fast(_SET_SEEN, {"key_id": id, **values})


def set_agent(tx: Tx, id: str, agent: str | None) -> None:
    """Set which agent the server runs; None: the default of its kind."""
    _set(tx, id, "agent", agent)


def set_hostname(tx: Tx, id: str, hostname: str) -> None:
    """Set the host name that the agent reports."""
    _set(tx, id, "hostname", hostname)


def set_labels(tx: Tx, id: str, labels: Mapping[str, str]) -> None:
    """Replace the server's labels."""
    server = find(tx, id)
    if server is not None:
        tx.record_labels(server.project_id, server.labels, labels)
    _set(tx, id, "labels", rows.dump(labels))


def set_policy(tx: Tx, id: str, policy: Mapping[str, Any] | None) -> None:
    """Replace the server's policy; None: the default policy of the site."""
    _set(tx, id, "policy", None if policy is None else rows.dump(policy))
    tx.bump_document(id)  # the document contains the number of concurrent runs


def set_stands_for(tx: Tx, id: str, resources: Mapping[str, str]) -> None:
    """Replace the resources that represent the server: resource id → id of the root stack."""
    _set(tx, id, "stands_for", rows.dump(resources))


def relink(tx: Tx, id: str, stack_id: str, resource_id: str, resource_name: str) -> None:
    """Assign the server to a resource."""
    values = {"stack_id": stack_id, "resource_id": resource_id, "resource_name": resource_name}
    tx.execute_fast(_RELINK, {"key_id": id, **values})


def disown(tx: Tx, id: str, resource_id: str) -> None:
    """Remove the server's link to its resource if it belongs to this resource."""
    tx.execute_fast(_DISOWN, {"key_id": id, "key_resource_id": resource_id})


def delete(tx: Tx, id: str) -> None:
    """Delete the server and its enrollments."""
    server = find(tx, id)
    if server is not None:
        tx.record_labels(server.project_id, server.labels, {})
    drop_enrollments(tx, id)
    _SERVERS.delete(tx, id)


def add_enrollment(tx: Tx, new: Enrollment) -> None:
    """Insert an enrollment."""
    _ENROLLMENTS.add(tx, new)


def enrollment(tx: Tx, token_hash: str) -> Enrollment | None:
    """
    Return the enrollment with this token, or None, and lock its row: two agents cannot use one token at the same time.
    """
    return _ENROLLMENTS.find(tx, token_hash, for_update=True)


def drop_enrollments(tx: Tx, server_id: str) -> None:
    """Delete all enrollments of a server."""
    tx.execute_fast(_DROP_ENROLLMENTS, {"server_id": server_id})


def use_enrollment(tx: Tx, token_hash: str, instance: str) -> None:
    """Record which agent has used the token."""
    tx.execute_fast(_USE, {"key_token_hash": token_hash, "instance": instance})


def _set(tx: Tx, id: str, name: str, value: Any) -> None:
    """Set one column of the server's row. ``value`` is as stored."""
    tx.execute_fast(_SET[name], {"key_id": id, name: value})
