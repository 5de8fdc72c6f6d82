"""Servers and enrolments in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.errors import EntityNotFound
from stoker.model.labels import match
from stoker.model.server import Enrolment, Kind, Server
from stoker.store import rows
from stoker.store.schema import enrolments, servers
from stoker.store.tx import Tx

_ADD = sa.insert(servers)
_GET = sa.select(servers).where(servers.c.id == sa.bindparam("id"))
_HOLD = _GET.with_for_update()
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
_DELETE = sa.delete(servers).where(servers.c.id == sa.bindparam("id_"))
_ADD_ENROLMENT = sa.insert(enrolments)
_ENROLMENT = sa.select(enrolments).where(enrolments.c.token_hash == sa.bindparam("hash")).with_for_update()
_USE = (
    sa.update(enrolments)
    .where(enrolments.c.token_hash == sa.bindparam("hash"))
    .values(instance=sa.bindparam("instance"))
)
_DROP_ENROLMENTS = sa.delete(enrolments).where(enrolments.c.server_id == sa.bindparam("id_"))


def hold_names(tx: Tx, project_id: str) -> None:
    """Until this transaction ends nobody else enrols in the project."""
    tx.alone(f"servers of {project_id}")


def concurrency(tx: Tx, id: str) -> int:
    """How many runs it may have at a time: what its policy says, else 1."""
    said = tx.run(_POLICY_OF, {"id": id}).scalar()
    policy = rows.load(said) if said else {}
    most = policy.get("max_concurrent_runs") if isinstance(policy, dict) else None
    return most if isinstance(most, int) and most >= 1 else 1


def add(tx: Tx, new: Server) -> None:
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
            "last_seen": rows.stamp_optional(new.last_seen),
            "agent": new.agent,
            "agent_version": new.agent_version,
            "hooks": rows.dump(new.hooks),
            "hostname": new.hostname,
            "labels": rows.dump(new.labels),
            "policy": None if new.policy is None else rows.dump(new.policy),
            "stands_for": rows.dump(new.stands_for),
            "created_at": rows.stamp(new.created_at),
        },
    )
    tx.relabelled(new.project_id, {}, new.labels)


def find(tx: Tx, id: str, *, hold: bool = False) -> Server | None:
    row = tx.run(_HOLD if hold else _GET, {"id": id}).first()
    return None if row is None else _server(row)


def get(tx: Tx, id: str, project_id: str) -> Server:
    found = find(tx, id)
    if found is None or found.project_id != project_id:
        raise EntityNotFound.of("Server", id)
    return found


def named(tx: Tx, name: str, project_id: str) -> list[Server]:
    """Several servers of stacks may share a name; enrolled ones may not."""
    return [_server(row) for row in tx.run(_NAMED, {"project": project_id, "name": name})]


def listed(tx: Tx, project_id: str) -> list[Server]:
    return [_server(row) for row in tx.run(_LIST, {"project": project_id})]


def labelled(tx: Tx, project_id: str, labels: Mapping[str, str]) -> list[Server]:
    """Those that have all of these labels, by name; none when no label is said."""
    if not labels:
        return []
    found = (row for row in tx.run(_LABELLED, {"project": project_id}) if match(rows.load(row.labels), labels))
    return [_server(row) for row in found]


def of_kind(tx: Tx, kind: Kind) -> list[Server]:
    """Every project's."""
    return [_server(row) for row in tx.run(_OF_KIND, {"kind": kind.value})]


def rename(tx: Tx, id: str, name: str) -> None:
    tx.run(_RENAME, {"id_": id, "name": name})


def set_key_generation(tx: Tx, id: str, generation: int) -> None:
    tx.run(_GENERATION, {"id_": id, "generation": generation})


def seen(tx: Tx, id: str, at: datetime, version: str | None, hooks: tuple[str, ...]) -> None:
    tx.run(_SEEN, {"id_": id, "at": rows.stamp(at), "version": version, "hooks": rows.dump(hooks)})


def set_agent(tx: Tx, id: str, agent: str | None) -> None:
    tx.run(_AGENT, {"id_": id, "agent": agent})


def set_hostname(tx: Tx, id: str, hostname: str) -> None:
    tx.run(_HOSTNAME, {"id_": id, "hostname": hostname})


def set_labels(tx: Tx, id: str, labels: Mapping[str, str]) -> None:
    found = find(tx, id)
    if found is not None:
        tx.relabelled(found.project_id, found.labels, labels)
    tx.run(_LABEL, {"id_": id, "labels": rows.dump(labels)})


def set_policy(tx: Tx, id: str, policy: Mapping[str, Any] | None) -> None:
    tx.run(_POLICY, {"id_": id, "policy": None if policy is None else rows.dump(policy)})
    tx.touch(id)  # its document says how many may run at a time


def set_stands_for(tx: Tx, id: str, resources: Mapping[str, str]) -> None:
    tx.run(_STAND, {"id_": id, "resources": rows.dump(resources)})


def relink(tx: Tx, id: str, stack_id: str | None, resource_id: str | None, resource_name: str | None = None) -> None:
    """From now on it is that resource's, or nobody's."""
    tx.run(_RELINK, {"id_": id, "stack": stack_id, "resource": resource_id, "resource_": resource_name})


def delete(tx: Tx, id: str) -> None:
    found = find(tx, id)
    if found is not None:
        tx.relabelled(found.project_id, found.labels, {})
    tx.run(_DROP_ENROLMENTS, {"id_": id})
    tx.run(_DELETE, {"id_": id})


def add_enrolment(tx: Tx, new: Enrolment) -> None:
    tx.run(
        _ADD_ENROLMENT,
        {
            "token_hash": new.token_hash,
            "server_id": new.server_id,
            "expires_at": rows.stamp(new.expires_at),
            "instance": new.instance,
        },
    )


def enrolment(tx: Tx, token_hash: str) -> Enrolment | None:
    """Held until this transaction ends: of two who offer one token, one is second."""
    row = tx.run(_ENROLMENT, {"hash": token_hash}).first()
    if row is None:
        return None
    return Enrolment(
        token_hash=row.token_hash,
        server_id=row.server_id,
        expires_at=rows.moment(row.expires_at),
        instance=row.instance,
    )


def drop_enrolments(tx: Tx, server_id: str) -> None:
    tx.run(_DROP_ENROLMENTS, {"id_": server_id})


def use_enrolment(tx: Tx, token_hash: str, instance: str) -> None:
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
        last_seen=rows.moment_optional(row.last_seen),
        agent=row.agent,
        agent_version=row.agent_version,
        hooks=tuple(rows.load(row.hooks)),
        hostname=row.hostname,
        labels=rows.load(row.labels),
        policy=rows.load_optional(row.policy),
        stands_for=rows.load(row.stands_for),
        created_at=rows.moment(row.created_at),
    )
