"""Queries for servers, what policies see of them and the facts that their agents report, for enrollments and relays."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from stoker.model.errors import Conflict
from stoker.model.selectors import Selectable
from stoker.model.server import (
    PROBLEM,
    AgentAccess,
    Enrollment,
    FactsSummary,
    Kind,
    Machine,
    Relay,
    Server,
    ServerFacts,
    describe_os,
)
from stoker.store import configs, rows, stacks
from stoker.store.query import column, execute
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

SERVERS = Repository(Server, "servers", noun="Server")
find, get, prime = SERVERS.find, SERVERS.get, SERVERS.prime
#: The rule of ``Server.status`` in SQL, for lists and counts that decode no server.
STATUS = (
    f"CASE WHEN agent_access != '{AgentAccess.ALLOWED}' THEN agent_access"
    " WHEN last_seen > :online_since THEN 'ONLINE' WHEN last_seen IS NOT NULL THEN 'OFFLINE'"
    f" WHEN kind = '{Kind.ENROLLED}' AND key_generation = 0 THEN 'ENROLLING' ELSE 'NEVER_SEEN' END"
)
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Return a project's servers with a name. Servers of stacks may share a name; enrolled servers may not.
find_by_name: Callable[[Tx, str, str], list[Server]] = SERVERS.lister("name = :name AND project_id = :project_id")
#: Return a project's servers with one of these names.
find_by_names: Callable[[Tx, Collection[str], str], list[Server]] = SERVERS.lister(
    "name @in(names) AND project_id = :project_id"
)
#: Return all servers of a kind, of all projects.
of_kind: Callable[[Tx, Kind], list[Server]] = SERVERS.lister("kind = :kind")
#: Record the time of the last heartbeats of several agents.
record_seen_again: Callable[[Tx, datetime, Collection[str]], None] = execute(
    "UPDATE servers SET last_seen = :last_seen WHERE id @in(ids)"
)
#: Remove a server's link to its resource if it belongs to this resource.
disown: Callable[[Tx, str, str], None] = execute(
    "UPDATE servers SET stack_id = NULL, resource_id = NULL, resource_name = NULL"
    " WHERE id = :id AND resource_id = :resource_id"
)
#: Return those of the names that servers of a project have.
find_names: Callable[[Tx, str, Collection[str]], list[str]] = column(
    "SELECT name FROM servers WHERE project_id = :project_id AND name @in(names)"
)
#: The enrollment is in both parts, as two parameters, because SQLite then uses an index for each.
_REDEEMED = SERVERS.select(
    "(enrollment_id = :enrollment_id AND instance = :instance"
    " OR enrollment_id = :enrollment_too AND machine = :machine)"
)
FACTS = Repository(ServerFacts, "server_facts", key=("server_id",))
#: Return the facts of a server, or None if its agent has sent none; ``prime_facts`` reads those of several at once.
find_facts, prime_facts = FACTS.find, FACTS.prime
#: Lists do not read the facts, which are up to 32 KB of each server.
_SUMMARIES = Repository(FactsSummary, "server_facts", key=("server_id",))


def lock_names(tx: Tx, project_id: str) -> None:
    """Lock the names of servers in the project until the transaction ends, so that no other server is enrolled."""
    tx.advisory_lock(f"servers of {project_id}")


def add(tx: Tx, new: Server) -> None:
    """Insert a server."""
    tx.cache.pop(("policy", new.id), None)
    SERVERS.add(tx, new)
    tx.record_server_change(new.project_id, None, selectable(new, {}))


def change(tx: Tx, id: str, **changes: Any) -> None:
    """
    Set attributes of a server: ``change(tx, id, labels={"tier": "web"}, policy=None)``.

    A new ``policy`` gives the document a new revision, because the document has the number of concurrent runs. A new
    ``key_generation`` revokes all earlier keys.
    """
    if not changes.keys().isdisjoint({"labels", "agent_access"}):
        server = find(tx, id)
        if server is not None:
            facts = load_facts(tx, id)
            before, after = selectable(server, facts), selectable(replace(server, **changes), facts)
            tx.record_server_change(server.project_id, before, after)
    if "policy" in changes:
        tx.bump_document(id)
    tx.cache.pop(("policy", id), None)
    SERVERS.update(tx, id, **changes)


def find_enrolled(tx: Tx, name: str, project_id: str) -> Server | None:
    """
    Return the project's enrolled server to which a stack may refer by this name, or None.

    A server whose machine chose the name itself is none: the machine could take the place of another one.
    """
    same = (server for server in find_by_name(tx, name, project_id) if server.kind is Kind.ENROLLED)
    return next((server for server in same if not server.is_self_named), None)


def refuse_self_named(tx: Tx, name: str, project_id: str) -> None:
    """Raise Conflict if a machine chose this name itself: what a stack does there would wait for ever."""
    if any(server.is_self_named for server in find_by_name(tx, name, project_id)):
        raise Conflict(
            f"The machine of server {name!r} chose this name itself, so no stack uses it: approve the name with"
            f" `stoker server approve {name}`, or enroll machines with --names."
        )


def resolve_id(tx: Tx, project_id: str, ref: str) -> str:
    """
    Return the id of the server that ``ref`` names: an id, or the name of an enrolled server of the project.

    Returns ``ref`` itself if there is no such server, which may be created later. An id costs no query. Raises Conflict
    as ``refuse_self_named`` does.
    """
    if _UUID.fullmatch(ref) or find(tx, ref) is not None:
        return ref
    enrolled = find_enrolled(tx, ref, project_id)
    if enrolled is None:
        refuse_self_named(tx, ref, project_id)
        return ref
    return enrolled.id


def find_several(tx: Tx, ids: Collection[str]) -> dict[str, Server]:
    """Return by id the servers with these ids, of any project."""
    return {server.id: server for server in SERVERS.find_several(tx, ids)}


def record_seen(
    tx: Tx, id: str, at: datetime, version: str | None, hooks: tuple[str, ...], modes: tuple[str, ...] = ()
) -> None:
    """Record the time of the agent's last heartbeat, its version, its hooks and the modes that it knows."""
    SERVERS.update(tx, id, later=True, last_seen=at, agent_version=version, hooks=hooks, modes=modes)


def find_redeemed(tx: Tx, enrollment_id: str, machine: Machine) -> Server | None:
    """Return the locked server that this machine became with the enrollment, or None."""
    values: dict[str, Any] = {"enrollment_id": enrollment_id, "enrollment_too": enrollment_id}
    values |= {"instance": machine.instance, "machine": machine.machine or None}
    matches = SERVERS.all(tx, _REDEEMED, values, for_update=True)
    same_instance = [server for server in matches if server.instance == machine.instance]
    return next(iter([*same_instance, *matches]), None)


def delete(tx: Tx, id: str) -> None:
    """Delete the server and its enrollments."""
    server = find(tx, id)
    if server is not None:
        tx.record_server_change(server.project_id, selectable(server, load_facts(tx, id)), None)
    drop_enrollments(tx, id)
    SERVERS.delete(tx, id)


def load_facts(tx: Tx, server_id: str) -> Mapping[str, Any]:
    """Return what the agent of a server has reported; empty if it has sent nothing."""
    row = find_facts(tx, server_id)
    return row.facts if row else {}


def selectable(server: Server, facts: Mapping[str, Any]) -> Selectable | None:
    """Return what selectors see of a server; None if it waits for approval, or has left: nothing would run there."""
    return Selectable(server.labels, facts) if server.agent_access is AgentAccess.ALLOWED else None


def summarize_facts(tx: Tx, server_ids: Iterable[str]) -> dict[str, FactsSummary]:
    """Return by server id what lists show of the servers' facts."""
    return {facts.server_id: facts for facts in _SUMMARIES.find_several(tx, server_ids)}


def put_facts(tx: Tx, server: Server, before: ServerFacts | None, facts: Mapping[str, Any]) -> None:
    """Replace the facts of a server. ``before``: its stored facts."""
    new = ServerFacts(
        server_id=server.id,
        facts=facts,
        os=describe_os(facts),
        address=facts.get("address"),
        problem=facts.get(PROBLEM),
        reported_at=tx.now,
    )
    (FACTS.add if before is None else FACTS.save)(tx, new)
    old = selectable(server, before.facts if before else {})
    tx.record_server_change(server.project_id, old, selectable(server, facts))


_ENROLLMENTS = Repository(Enrollment, "enrollments", noun="Enrollment")
add_enrollment, get_enrollment, delete_enrollment = _ENROLLMENTS.add, _ENROLLMENTS.get, _ENROLLMENTS.delete
update_enrollment = _ENROLLMENTS.update
#: Return the enrollment with the token of this hash, and lock its row: two agents cannot take its last place.
enrollment_of_token: Callable[[Tx, str], Enrollment | None] = _ENROLLMENTS.finder(
    "token_hash = :token_hash @for_update"
)
#: Return the enrollments of a project, oldest first.
list_enrollments: Callable[[Tx, str], list[Enrollment]] = _ENROLLMENTS.lister(
    "project_id = :project_id ORDER BY created_at, id"
)
drop_enrollments: Callable[[Tx, str], None] = execute("DELETE FROM enrollments WHERE server_id = :server_id")
#: Delete the enrollments of a project that expired before a time.
drop_expired_enrollments: Callable[[Tx, str, datetime], None] = execute(
    "DELETE FROM enrollments WHERE project_id = :project_id AND expires_at < :before"
)


_RELAYS = Repository(Relay, "relays", noun="Relay")
find_relay, get_relay, update_relay, delete_relay = _RELAYS.find, _RELAYS.get, _RELAYS.update, _RELAYS.delete
find_relay_by_name: Callable[[Tx, str, str], Relay | None] = _RELAYS.finder("project_id = :project_id AND name = :name")
#: Return the relays of a project, sorted by name.
list_relays: Callable[[Tx, str], list[Relay]] = _RELAYS.lister("project_id = :project_id ORDER BY name")
delete_relays_in: Callable[[Tx, str], None] = execute("DELETE FROM relays WHERE project_id = :project_id")


def add_relay(tx: Tx, new: Relay) -> None:
    """Insert a relay. Raises Conflict if another one of the project has its name."""
    if not _RELAYS.add(tx, new, unless_exists=True):
        raise Conflict(f"A relay named {new.name!r} exists already: choose another name, or delete that relay first.")


_GOVERNED = ", ".join(f"servers.{name}" for name in ("project_id", "policy", "name", "stack_id", "stands_for", "agent"))
_GOVERNED_BY_ID = sql(f"SELECT {_GOVERNED} FROM servers WHERE id = :id")
#: The lock does not block heartbeats, but it blocks changes and the deletion of the server.
_STAYING = sql(f"{_GOVERNED_BY_ID.text} @for_key_share")
_SEVERAL_GOVERNED = sql(f"SELECT {_GOVERNED}, servers.id FROM servers WHERE id @in(ids) ORDER BY id")
_SEVERAL_STAYING = sql(f"{_SEVERAL_GOVERNED.text} @for_key_share")
#: The server is in a subquery, because PostgreSQL locks no row of an outer join.
_WITH_CONFIG = sql(
    f"SELECT {configs.COLUMNS}, {_GOVERNED} FROM configs"
    f" LEFT JOIN (SELECT {_GOVERNED} FROM servers WHERE servers.id = :id @for_key_share) AS servers ON true"
    " WHERE configs.id = :config"
)


@dataclass(frozen=True, slots=True)
class Governed:
    """The columns of a server's row that policies use."""

    project_id: str
    #: As stored; None: the server has no policy of its own.
    policy: str | None
    name: str
    stack_id: str | None
    #: As stored: the resources that represent the server, resource id → id of the root stack.
    stands_for: str
    #: The agent on the server, as its resource declares it.
    agent: str | None

    @property
    def stood_for_by(self) -> frozenset[str]:
        """The ids of the root stacks with a resource that represents the server."""
        return frozenset(rows.load(self.stands_for).values())


def find_governed(tx: Tx, id: str, *, staying: bool = False) -> Governed | None:
    """
    Return a server's row, or None. Every deployment asks this when it starts: one read by primary key.

    ``staying`` locks the row, so that the server and its policy do not change until the transaction ends.
    """
    row = tx.cache.get(("policy", id)) or tx.execute_fast(_STAYING if staying else _GOVERNED_BY_ID, {"id": id})
    return None if row is None or row[0] is None else Governed(*row)


def prime_governed(tx: Tx, ids: Collection[str]) -> None:
    """
    Read the rows of several servers at once.

    A write transaction locks them, as ``find_governed`` does with ``staying``; a read transaction reads their stacks,
    too.
    """
    loaded = tx.fetch_all(_SEVERAL_GOVERNED if tx.is_reading else _SEVERAL_STAYING, {"ids": rows.dump(list(ids))})
    tx.cache |= {("policy", id): row for *row, id in loaded}
    if tx.is_reading:
        stacks.STACKS.prime(tx, {id for *row, _ in loaded if (id := Governed(*row).stack_id)})


def prime_with_config(tx: Tx, id: str, config_id: str) -> None:
    """Read and lock the row of a server, and read a config, at once, unless the transaction has read the config."""
    if ("configs", config_id) in tx.cache:
        return
    row = tx.execute_fast(_WITH_CONFIG, {"id": id, "config": config_id})
    if row is not None:  # the server need not exist
        tx.cache["configs", config_id], tx.cache["policy", id] = row[:4], row[4:]
