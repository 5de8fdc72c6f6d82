"""Queries for servers and enrollments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.errors import EntityNotFound
from stoker.model.labels import match
from stoker.model.server import Enrollment, Kind, Server
from stoker.store import rows
from stoker.store.schema import enrollments, servers
from stoker.store.tx import Tx

_ADD = sa.insert(servers)
_GET = sa.select(servers).where(servers.c.id == sa.bindparam("id"))
_LOCKED = _GET.with_for_update()
_NAMED = sa.select(servers).where(
    servers.c.project_id == sa.bindparam("project"), servers.c.name == sa.bindparam("name")
)
_LIST = sa.select(servers).where(servers.c.project_id == sa.bindparam("project")).order_by(servers.c.created_at)
_LABELLED = _LIST.where(servers.c.labels != "{}").order_by(None).order_by(servers.c.name, servers.c.id)
_OF_KIND = sa.select(servers).where(servers.c.kind == sa.bindparam("kind"))
_RENAME = sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(name=sa.bindparam("name"))
_GENERATION = (
    sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(key_generation=sa.bindparam("generation"))
)
_SEEN = (
    sa.update(servers)
    .where(servers.c.id == sa.bindparam("id_"))
    .values(last_seen=sa.bindparam("at"), agent_version=sa.bindparam("version"), hooks=sa.bindparam("hooks"))
)
_AGENT = sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(agent=sa.bindparam("agent"))
_HOSTNAME = sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(hostname=sa.bindparam("hostname"))
_LABEL = sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(labels=sa.bindparam("labels"))
_POLICY = sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(policy=sa.bindparam("policy"))
_POLICY_OF = sa.select(servers.c.policy).where(servers.c.id == sa.bindparam("id"))
_STAND = sa.update(servers).where(servers.c.id == sa.bindparam("id_")).values(stands_for=sa.bindparam("resources"))
_RELINK = (
    sa.update(servers)
    .where(servers.c.id == sa.bindparam("id_"))
    .values(
        stack_id=sa.bindparam("stack"), resource_id=sa.bindparam("resource"), resource_name=sa.bindparam("resource_")
    )
)
_DISOWN = (
    sa.update(servers)
    .where(servers.c.id == sa.bindparam("id_"), servers.c.resource_id == sa.bindparam("resource"))
    .values(stack_id=None, resource_id=None, resource_name=None)
)
_DELETE = sa.delete(servers).where(servers.c.id == sa.bindparam("id_"))
_ADD_ENROLMENT = sa.insert(enrollments)
_ENROLMENT = sa.select(enrollments).where(enrollments.c.token_hash == sa.bindparam("hash")).with_for_update()
_USE = (
    sa.update(enrollments)
    .where(enrollments.c.token_hash == sa.bindparam("hash"))
    .values(instance=sa.bindparam("instance"))
)
_DROP_ENROLMENTS = sa.delete(enrollments).where(enrollments.c.server_id == sa.bindparam("id_"))


def lock_names(tx: Tx, project_id: str) -> None:
    """Lock the names of servers in the project until the transaction ends, so that no other server is enrolled."""
    tx.advisory_lock(f"servers of {project_id}")


def concurrency(tx: Tx, id: str) -> int:
    """Return the number of runs that the server may run at a time: the policy's value, else 1."""
    said = tx.run(_POLICY_OF, {"id": id}).scalar()
    policy = rows.load(said) if said else {}
    most = policy.get("max_concurrent_runs") if isinstance(policy, dict) else None
    return most if isinstance(most, int) and most >= 1 else 1


def add(tx: Tx, new: Server) -> None:
    """Insert a server."""
    tx.run(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "name": new.name,
            "kind": new.kind.value,
            "stack_id": new.stack_id,
            "resource_id": new.resource_id,
            "resource_name": new.resource_name,
            "key_generation": new.key_generation,
            "last_seen": rows.to_micros_optional(new.last_seen),
            "agent": new.agent,
            "agent_version": new.agent_version,
            "hooks": rows.dump(new.hooks),
            "hostname": new.hostname,
            "labels": rows.dump(new.labels),
            "policy": None if new.policy is None else rows.dump(new.policy),
            "stands_for": rows.dump(new.stands_for),
            "created_at": rows.to_micros(new.created_at),
        },
    )
    tx.record_labels(new.project_id, {}, new.labels)


def find(tx: Tx, id: str, *, for_update: bool = False) -> Server | None:
    """Return the server with this id, of any project, or None; ``for_update`` locks its row."""
    row = tx.run(_LOCKED if for_update else _GET, {"id": id}).first()
    return None if row is None else _server(row)


def get(tx: Tx, id: str, project_id: str) -> Server:
    """Return the project's server. Raises EntityNotFound."""
    found = find(tx, id)
    if found is None or found.project_id != project_id:
        raise EntityNotFound.of("Server", id)
    return found


def find_by_name(tx: Tx, name: str, project_id: str) -> list[Server]:
    """Return the project's servers with this name. Servers of stacks may share a name; enrolled servers may not."""
    return [_server(row) for row in tx.run(_NAMED, {"project": project_id, "name": name})]


def list_all(tx: Tx, project_id: str) -> list[Server]:
    """Return the project's servers, oldest first."""
    return [_server(row) for row in tx.run(_LIST, {"project": project_id})]


def find_by_labels(tx: Tx, project_id: str, labels: Mapping[str, str]) -> list[Server]:
    """Return the project's servers that have all of these labels, sorted by name; none if ``labels`` is empty."""
    if not labels:
        return []
    found = (row for row in tx.run(_LABELLED, {"project": project_id}) if match(rows.load(row.labels), labels))
    return [_server(row) for row in found]


def of_kind(tx: Tx, kind: Kind) -> list[Server]:
    """Return all servers of this kind, of all projects."""
    return [_server(row) for row in tx.run(_OF_KIND, {"kind": kind.value})]


def rename(tx: Tx, id: str, name: str) -> None:
    """Set the server's name."""
    tx.run(_RENAME, {"id_": id, "name": name})


def set_key_generation(tx: Tx, id: str, generation: int) -> None:
    """Set the number of keys that the server was issued, which revokes the older keys."""
    tx.run(_GENERATION, {"id_": id, "generation": generation})


def record_seen(tx: Tx, id: str, at: datetime, version: str | None, hooks: tuple[str, ...]) -> None:
    """Record the time of the agent's last heartbeat, its version and its hooks."""
    tx.run(_SEEN, {"id_": id, "at": rows.to_micros(at), "version": version, "hooks": rows.dump(hooks)})


def set_agent(tx: Tx, id: str, agent: str | None) -> None:
    """Set which agent the server runs; None: the default of its kind."""
    tx.run(_AGENT, {"id_": id, "agent": agent})


def set_hostname(tx: Tx, id: str, hostname: str) -> None:
    """Set the host name that the agent reports."""
    tx.run(_HOSTNAME, {"id_": id, "hostname": hostname})


def set_labels(tx: Tx, id: str, labels: Mapping[str, str]) -> None:
    """Replace the server's labels."""
    found = find(tx, id)
    if found is not None:
        tx.record_labels(found.project_id, found.labels, labels)
    tx.run(_LABEL, {"id_": id, "labels": rows.dump(labels)})


def set_policy(tx: Tx, id: str, policy: Mapping[str, Any] | None) -> None:
    """Replace the server's policy; None: the default policy of the site."""
    tx.run(_POLICY, {"id_": id, "policy": None if policy is None else rows.dump(policy)})
    tx.bump_document(id)  # the document contains the number of concurrent runs


def set_stands_for(tx: Tx, id: str, resources: Mapping[str, str]) -> None:
    """Replace the resources that represent the server: resource id → id of the root stack."""
    tx.run(_STAND, {"id_": id, "resources": rows.dump(resources)})


def relink(tx: Tx, id: str, stack_id: str, resource_id: str, resource_name: str) -> None:
    """Assign the server to a resource."""
    tx.run(_RELINK, {"id_": id, "stack": stack_id, "resource": resource_id, "resource_": resource_name})


def disown(tx: Tx, id: str, resource_id: str) -> None:
    """Remove the server's link to its resource if it belongs to this resource."""
    tx.run(_DISOWN, {"id_": id, "resource": resource_id})


def delete(tx: Tx, id: str) -> None:
    """Delete the server and its enrollments."""
    found = find(tx, id)
    if found is not None:
        tx.record_labels(found.project_id, found.labels, {})
    tx.run(_DROP_ENROLMENTS, {"id_": id})
    tx.run(_DELETE, {"id_": id})


def add_enrollment(tx: Tx, new: Enrollment) -> None:
    """Insert an enrollment."""
    tx.run(
        _ADD_ENROLMENT,
        {
            "token_hash": new.token_hash,
            "server_id": new.server_id,
            "expires_at": rows.to_micros(new.expires_at),
            "instance": new.instance,
        },
    )


def enrollment(tx: Tx, token_hash: str) -> Enrollment | None:
    """
    Return the enrollment with this token, or None, and lock its row: two agents cannot use one token at the same time.
    """
    row = tx.run(_ENROLMENT, {"hash": token_hash}).first()
    if row is None:
        return None
    return Enrollment(
        token_hash=row.token_hash,
        server_id=row.server_id,
        expires_at=rows.from_micros(row.expires_at),
        instance=row.instance,
    )


def drop_enrollments(tx: Tx, server_id: str) -> None:
    """Delete all enrollments of a server."""
    tx.run(_DROP_ENROLMENTS, {"id_": server_id})


def use_enrollment(tx: Tx, token_hash: str, instance: str) -> None:
    """Record which agent has used the token."""
    tx.run(_USE, {"hash": token_hash, "instance": instance})


def _server(row: Any) -> Server:
    return Server(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        kind=Kind(row.kind),
        stack_id=row.stack_id,
        resource_id=row.resource_id,
        resource_name=row.resource_name,
        key_generation=row.key_generation,
        last_seen=rows.from_micros_optional(row.last_seen),
        agent=row.agent,
        agent_version=row.agent_version,
        hooks=tuple(rows.load(row.hooks)),
        hostname=row.hostname,
        labels=rows.load(row.labels),
        policy=rows.load_optional(row.policy),
        stands_for=rows.load(row.stands_for),
        created_at=rows.from_micros(row.created_at),
    )
