"""
Queries for servers' documents: their revisions and channels, and the rendered configs of which they are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from stoker.store import rows
from stoker.store.deployments import MAY_RUN, OWNER
from stoker.store.notifier import server_topic
from stoker.store.query import execute, scalar, table
from stoker.store.rows import ENCRYPTED
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: Return the revision of a server's document; 0 if the server never had a deployment.
revision: Callable[[Tx, str], int] = scalar(
    "SELECT coalesce(max(revision), 0) FROM documents WHERE server_id = :server_id"
)
#: In one statement, because most servers have no checks.
_AGENT_HEADS = sql(
    "SELECT documents.server_id, revision, servers.policy,"
    " EXISTS (SELECT 1 FROM checks WHERE checks.server_id = documents.server_id)"
    " FROM documents LEFT JOIN servers ON servers.id = documents.server_id WHERE documents.server_id @in(ids)"
)
#: Return the id of the resource whose transport publishes a server's document; None: agents only poll it.
carrier: Callable[[Tx, str], str | None] = scalar("SELECT channel FROM documents WHERE server_id = :server_id")
_PUBLISHED = sql("SELECT published, signed_revision FROM documents WHERE server_id = :server_id")
#: Record the digest and the signed revision of the published document: (transaction, digest, revision, server id).
set_published: Callable[[Tx, str | None, int, str], None] = execute(
    "UPDATE documents SET published = :digest, signed_revision = :revision WHERE server_id = :server_id"
)
#: Publish a server's document by the transport of a resource; None: no longer publish it.
carry: Callable[[Tx, str, str | None], None] = execute(
    "INSERT INTO documents (server_id, revision, channel) VALUES (:id, 1, :channel)"
    " ON CONFLICT (server_id) DO UPDATE SET channel = :channel"
)
_delete: Callable[[Tx, str], None] = execute("DELETE FROM documents WHERE server_id = :server_id")
#: Deployments in a project's document of a server: its own and, if the server belongs to the project, admitted ones.
OF_PROJECT = f"(deployments.project_id = :project OR (deployments.admitted AND {OWNER} = :project))"
_BODIES = (
    "SELECT configs.body, coalesce(configs.name, ''){} FROM deployments"
    " JOIN configs ON configs.id = deployments.config_id"
)
_NAME = itemgetter(1)
#: The order of runs on a server: by name, then by age. Sorted here: for an ORDER BY, SQLite would choose an index with
#: the deployments that have ended.
_NAME_AND_AGE = itemgetter(1, -1)
#: Runs that any agent may see. Other agents than Stoker's apply every config, whatever its mode.
_APPLIES = "deployments.held_by IS NULL AND deployments.mode IS NULL"
_BODIES_OF_PROJECT = sql(
    f"{_BODIES.format(', deployments.server_id')} WHERE deployments.server_id @in(ids) AND {OF_PROJECT} AND {_APPLIES}"
    " ORDER BY deployments.seq"
)
#: The condition of the index, with constants: the databases do not compare it with parameters.
_MAY_CONCERN_AGENT = (
    "(deployments.cancelling OR deployments.status = 'IN_PROGRESS' OR deployments.signal_transport = 'NO_SIGNAL')"
)
#: Runs that an agent has to start.
_AWAITED = "deployments.status = 'IN_PROGRESS' AND deployments.held_by IS NULL"
_TO_RUN = sql(
    _BODIES.format(
        ", deployments.server_id, deployments.id, deployments.config_id, deployments.cancelling, deployments.mode,"
        f" deployments.trigger_id, deployments.queued_at, {_AWAITED} AND deployments.sent_at IS NULL,"
        f" {_AWAITED} AND (deployments.sent_at IS NULL OR deployments.state = 'QUEUED'), deployments.seq"
    )
    + f" WHERE deployments.server_id @in(ids) AND {_MAY_CONCERN_AGENT}"
    f" AND (deployments.cancelling OR deployments.held_by IS NULL) AND {MAY_RUN}"
)
#: Return the runs in a project's document of a server, as in ``bodies``, that were never sent: (deployment id, derived
#: config id).
unsent: Callable[[Tx, str, str], list[tuple[str, str]]] = table(
    "SELECT id, config_id FROM deployments"
    f" WHERE server_id = :server_id AND status = 'IN_PROGRESS' AND sent_at IS NULL AND {_APPLIES} AND {OF_PROJECT}"
)
#: The key of ``Tx.cache`` with the servers whose bodies a read transaction may need.
_EXPECTED = ("bodies", "expected")


@dataclass(frozen=True, slots=True)
class Published:
    """The last published document of a server: its digest, and its signed revision (0: nothing was published yet)."""

    digest: str | None
    revision: int


class AgentHead(NamedTuple):
    """What the document of a server's own agent contains besides its runs."""

    #: 0 if the server never had a deployment.
    revision: int = 0
    #: The number of runs that the server may run at a time: the policy's value, else 1.
    concurrency: int = 1
    #: Whether deployments of the server have checks.
    has_checks: bool = False


def agent_heads(tx: Tx, server_ids: Collection[str]) -> dict[str, AgentHead]:
    """Return the heads of the documents of several servers. Servers that never had a deployment are missing."""
    return {
        server_id: AgentHead(revision, _concurrency(policy), bool(has_checks))
        for server_id, revision, policy, has_checks in tx.fetch_all(_AGENT_HEADS, {"ids": rows.dump(list(server_ids))})
    }


def _concurrency(policy: str | None) -> int:
    rules = rows.load(policy) if policy else None
    most = rules.get("max_concurrent_runs") if isinstance(rules, dict) else None
    return most if isinstance(most, int) and most >= 1 else 1


def published(tx: Tx, server_id: str) -> Published:
    """Return the digest and signed revision of the last published document."""
    row = tx.execute_fast(_PUBLISHED, {"server_id": server_id})
    return Published(None, 0) if row is None else Published(*row)


def delete(tx: Tx, server_id: str) -> None:
    """Delete the document's row."""
    tx.drop_document(server_id)
    tx.notify(server_topic(server_id))  # drops the document from caches
    _delete(tx, server_id)


def bodies(tx: Tx, server_id: str, project_id: str) -> list[str]:
    """
    Return the rendered derived configs in a project's document of a server, in Heat's order: by name, then by age.
    """
    present: list[Any] | None = tx.cache.get(("bodies", server_id, project_id))
    if present is None:
        expected = tx.cache.pop(_EXPECTED) if server_id in tx.cache.get(_EXPECTED, ()) else ()
        loaded: dict[str, list[Any]] = {id: [] for id in expected or (server_id,)}
        for row in tx.fetch_all(_BODIES_OF_PROJECT, {"ids": rows.dump(list(loaded)), "project": project_id}):
            loaded[row[2]].append(row)
        tx.cache |= {("bodies", id, project_id): loaded[id] for id in expected}
        present = loaded[server_id]
    return [tx.secrets.decrypt(row[0]) for row in sorted(present, key=_NAME)]


def prime_bodies(tx: Tx, server_ids: Collection[str]) -> None:
    """In a read transaction, let the first call of ``bodies`` for one of these servers load those of all."""
    if tx.is_reading:
        tx.cache.setdefault(_EXPECTED, set()).update(server_ids)


class ToRun(NamedTuple):
    """A run that a server's own agent has to run, report or stop."""

    #: The rendered derived config.
    body: str
    name: str
    server_id: str
    deployment_id: str
    config_id: str
    #: Whether the agent has to stop the run.
    is_cancelling: bool
    #: PREVIEW or UNDO; None: the run applies the config.
    mode: str | None
    #: The trigger that started the run, if any.
    trigger_id: str | None
    #: The time of the request in microseconds since 1970, if it is recorded.
    queued_at: int | None
    #: The run has to start, and was never sent.
    is_unsent: bool
    #: The run has to start, and the agent has not acknowledged it.
    is_unreceived: bool
    seq: int


def to_run(tx: Tx, server_id: str) -> list[ToRun]:
    """Return the runs that the server's own agent has to run, report or stop."""
    return to_run_on(tx, (server_id,)).get(server_id, [])


def to_run_on(tx: Tx, server_ids: Collection[str]) -> dict[str, list[ToRun]]:
    """Return the runs of ``to_run`` of several servers, by server."""
    result: dict[str, list[ToRun]] = {}
    for body, *row in sorted(tx.fetch_all(_TO_RUN, {"ids": rows.dump(list(server_ids))}), key=_NAME_AND_AGE):
        # without a call for most runs: a document may have hundreds
        text = tx.secrets.decrypt(body) if body.startswith(ENCRYPTED) else body
        result.setdefault(row[1], []).append(ToRun(text, *row))
    return result
