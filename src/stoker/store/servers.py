"""Queries for servers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.server import AgentAccess, Kind, Machine, Server
from stoker.store import rows, statements
from stoker.store.repository import Repository, require
from stoker.store.schema import enrollments, servers
from stoker.store.server_facts import load_facts, selectable
from stoker.store.tx import Tx

_SERVERS = Repository(Server, servers)
_SEVERAL = _SERVERS.select(statements.AnyOf(servers.c.id))
_ID_PLACE = _SERVERS.columns.index(servers.c.id)
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMED = _SERVERS.by("project_id", "name")
_OF_KIND = _SERVERS.by("kind")
_POLICY_OF = sa.select(servers.c.policy).where(*statements.equal(servers, "id"))
_SET_SEEN = statements.update(servers, "last_seen", "agent_version", "hooks", "modes")
_SET_SEEN_AGAIN = sa.update(servers).where(statements.AnyOf(servers.c.id)).values(last_seen=sa.bindparam("last_seen"))
_SET = {
    name: statements.update(servers, name)
    for name in (
        *("name", "key_generation", "agent_access", "agent", "hooks", "labels"),
        *("policy", "stands_for"),
    )
}
_RELINK = statements.update(servers, "stack_id", "resource_id", "resource_name")
_DISOWN = (
    sa.update(servers)
    .where(servers.c.id == sa.bindparam("key_id"), servers.c.resource_id == sa.bindparam("key_resource_id"))
    .values(stack_id=None, resource_id=None, resource_name=None)
)
_SET_MACHINE = statements.update(servers, "enrollment_id", "instance", "machine", "hostname")
_NAMES = sa.select(servers.c.name).where(
    *statements.equal(servers, "project_id"), statements.AnyOf(servers.c.name, "names")
)
#: The condition on the enrollment is in both parts, because SQLite then uses an index for each.
_REDEEMED = _SERVERS.select(
    sa.or_(
        sa.and_(*statements.equal(servers, "enrollment_id", "instance")),
        sa.and_(*statements.equal(servers, "enrollment_id", "machine")),
    )
)
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
    tx.record_server_change(new.project_id, None, selectable(new, {}))


def find(tx: Tx, id: str, *, for_update: bool = False) -> Server | None:
    """Return the server with this id, of any project, or None; ``for_update`` locks its row."""
    row = None if for_update else tx.preloaded.get(("server", id))
    if row is not None:
        return _SERVERS.decode(row, tx.secrets)
    return _SERVERS.find(tx, id, for_update=for_update)


def preload(tx: Tx, ids: Collection[str]) -> None:
    """Read the rows of several servers at once; ``find`` takes them from memory until ``preloaded`` is cleared."""
    for row in tx.fetch_all(_SEVERAL, {"ids": rows.dump(list(ids))}):
        tx.preloaded["server", row[_ID_PLACE]] = row


def get(tx: Tx, id: str, project_id: str) -> Server:
    """Return the project's server. Raises EntityNotFound."""
    return require(find(tx, id), "Server", id, project_id)


def find_by_name(tx: Tx, name: str, project_id: str) -> list[Server]:
    """Return the project's servers with this name. Servers of stacks may share a name; enrolled servers may not."""
    return _SERVERS.all(tx, _NAMED, {"project_id": project_id, "name": name})


def find_enrolled(tx: Tx, name: str, project_id: str) -> Server | None:
    """Return the project's enrolled server with this name, or None."""
    return next((server for server in find_by_name(tx, name, project_id) if server.kind is Kind.ENROLLED), None)


def resolve_id(tx: Tx, project_id: str, ref: str) -> str:
    """
    Return the id of the server that ``ref`` names: an id, or the name of an enrolled server of the project.

    Returns ``ref`` itself if there is no such server, which may be created later. An id costs no query.
    """
    if _UUID.fullmatch(ref) or find(tx, ref) is not None:
        return ref
    enrolled = find_enrolled(tx, ref, project_id)
    return enrolled.id if enrolled else ref


def find_several(tx: Tx, ids: Collection[str]) -> dict[str, Server]:
    """Return by id the servers with these ids, of any project."""
    return {server.id: server for server in _SERVERS.all(tx, _SEVERAL, {"ids": rows.dump(list(ids))})}


def of_kind(tx: Tx, kind: Kind) -> list[Server]:
    """Return all servers of this kind, of all projects."""
    return _SERVERS.all(tx, _OF_KIND, {"kind": kind.value})


def rename(tx: Tx, id: str, name: str) -> None:
    """Set the server's name."""
    _set(tx, id, "name", name)


def set_key_generation(tx: Tx, id: str, generation: int) -> None:
    """Set the number of keys that the server was issued, which revokes the older keys."""
    _set(tx, id, "key_generation", generation)


def set_agent_access(tx: Tx, server: Server, access: AgentAccess) -> None:
    """Set whether the server's agent may use its key. Selectors over labels match the server only if it may."""
    facts, changed = load_facts(tx, server.id), replace(server, agent_access=access)
    tx.record_server_change(server.project_id, selectable(server, facts), selectable(changed, facts))
    _set(tx, server.id, "agent_access", access.value)


def record_seen(
    tx: Tx, id: str, at: datetime, version: str | None, hooks: tuple[str, ...], modes: tuple[str, ...] = ()
) -> None:
    """Record the time of the agent's last heartbeat, its version, its hooks and the modes that it knows."""
    values = {
        "last_seen": rows.to_micros(at),
        "agent_version": version,
        "hooks": rows.dump(hooks),
        "modes": rows.dump(modes),
    }
    tx.put(_SET_SEEN, {"key_id": id, **values})


def record_seen_again(tx: Tx, ids: Collection[str], at: datetime) -> None:
    """Record the time of the last heartbeats of several agents."""
    tx.execute_fast(_SET_SEEN_AGAIN, {"ids": rows.dump(list(ids)), "last_seen": rows.to_micros(at)})


def set_agent(tx: Tx, id: str, agent: str | None) -> None:
    """Set which agent the server runs; None: the default of its kind."""
    _set(tx, id, "agent", agent)


def record_machine(tx: Tx, id: str, enrollment_id: str, machine: Machine) -> None:
    """Record the machine that has the server's key, and the enrollment with which it got the key."""
    values = {"instance": machine.instance, "machine": machine.machine or None, "hostname": machine.hostname}
    tx.execute_fast(_SET_MACHINE, {"key_id": id, "enrollment_id": enrollment_id, **values})


def find_redeemed(tx: Tx, enrollment_id: str, machine: Machine) -> Server | None:
    """Return the locked server that this machine became with the enrollment, or None."""
    values = {"enrollment_id": enrollment_id, "instance": machine.instance, "machine": machine.machine or None}
    matches = _SERVERS.all(tx, _REDEEMED, values, for_update=True)
    same_instance = [server for server in matches if server.instance == machine.instance]
    return next(iter([*same_instance, *matches]), None)


def find_names(tx: Tx, project_id: str, names: Collection[str]) -> set[str]:
    """Return those of the names that servers of the project have."""
    return {row[0] for row in tx.fetch_all(_NAMES, {"project_id": project_id, "names": rows.dump(list(names))})}


def set_hooks(tx: Tx, id: str, hooks: Iterable[str]) -> None:
    """Set the groups of configs that the server can run."""
    _set(tx, id, "hooks", rows.dump(tuple(hooks)))


def set_labels(tx: Tx, id: str, labels: Mapping[str, str]) -> None:
    """Replace the server's labels."""
    server = find(tx, id)
    if server is not None:
        facts = load_facts(tx, id)
        changed = replace(server, labels=labels)
        tx.record_server_change(server.project_id, selectable(server, facts), selectable(changed, facts))
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
        tx.record_server_change(server.project_id, selectable(server, load_facts(tx, id)), None)
    tx.execute_fast(_DROP_ENROLLMENTS, {"server_id": id})
    _SERVERS.delete(tx, id)


def _set(tx: Tx, id: str, name: str, value: Any) -> None:
    """Set one column of the server's row. ``value`` is as stored."""
    tx.execute_fast(_SET[name], {"key_id": id, name: value})
