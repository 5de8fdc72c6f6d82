"""Queries for policies of servers, and for the deployments that maintenance windows hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.deployment import PREVIEW, WINDOW, RunState
from stoker.model.stack import Stack
from stoker.store import rows, stacks, statements
from stoker.store.deployments import IS_CURRENT_RUN
from stoker.store.schema import deployments, runs, servers, triggers
from stoker.store.schema import stacks as all_stacks
from stoker.store.tx import Tx

_SERVER = sa.select(
    servers.c.project_id, servers.c.policy, servers.c.name, servers.c.stack_id, servers.c.stands_for, servers.c.agent
).where(servers.c.id == sa.bindparam("id"))
#: The lock does not block heartbeats, but it blocks changes and the deletion of the server.
_STAYING = _SERVER.with_for_update(read=True, key_share=True)
_STAYING_ALL = (
    sa.select(*_SERVER.selected_columns, servers.c.id)
    .where(statements.AnyOf(servers.c.id))
    .order_by(servers.c.id)
    .with_for_update(read=True, key_share=True)
)
_TRIGGERED = sa.select(triggers.c.stack_id).where(triggers.c.id == sa.bindparam("id"))
#: Conditions for runs that were not sent to the agent yet, of the server's own project or admitted.
_UNSENT = (
    deployments.c.server_id == sa.bindparam("server"),
    deployments.c.held_by.is_(None),
    deployments.c.status == "IN_PROGRESS",
    sa.or_(deployments.c.project_id == sa.bindparam("owner"), deployments.c.admitted),
    sa.or_(deployments.c.mode.is_(None), deployments.c.mode != PREVIEW),
    sa.exists().where(
        IS_CURRENT_RUN,
        runs.c.state == "QUEUED",
        runs.c.sent_at.is_(None),
    ),
)
_ANY_UNSENT = sa.select(deployments.c.id).where(*_UNSENT).limit(1)
_HELD_BACK = (
    deployments.c.server_id == sa.bindparam("server"),
    deployments.c.held_by == WINDOW,
    sa.or_(deployments.c.status.is_(None), deployments.c.status != "FAILED"),
)
#: Only deployments in progress get a new reason; the others keep their own.
_NEW_REASON = sa.case(
    (deployments.c.status == "IN_PROGRESS", sa.bindparam("reason")), else_=deployments.c.status_reason
)
#: For each server, since when the oldest run of a tree of stacks has waited for the maintenance window.
_WAITING = (
    sa.select(deployments.c.server_id, sa.func.min(runs.c.queued_at).label("since"))
    .join(all_stacks, all_stacks.c.id == deployments.c.stack_id)
    .join(runs, IS_CURRENT_RUN)
    .where(
        all_stacks.c.root_id == sa.bindparam("root"),
        deployments.c.held_by == WINDOW,
        deployments.c.status == "IN_PROGRESS",
    )
    .group_by(deployments.c.server_id)
)
_CHANGED = (deployments.c.id, deployments.c.config_id, deployments.c.status, deployments.c.signal_transport)
_HOLD_BACK = (
    sa.update(deployments)
    .where(*_UNSENT)
    .values(held_by=WINDOW, status_reason=sa.bindparam("reason"))
    .returning(*_CHANGED)
)
_UPDATE_REASONS = sa.update(deployments).where(*_HELD_BACK).values(status_reason=_NEW_REASON).returning(*_CHANGED)
_RELEASE = (
    sa.update(deployments).where(*_HELD_BACK).values(held_by=None, status_reason=_NEW_REASON).returning(*_CHANGED)
)
_UNDER_WAY = (
    sa.select(
        deployments.c.id,
        deployments.c.config_id,
        deployments.c.stack_id,
        deployments.c.resource_id,
        deployments.c.trigger_id,
    )
    .where(deployments.c.server_id == sa.bindparam("server"), deployments.c.status == "IN_PROGRESS")
    .order_by(deployments.c.seq)
)
_MAY_HAVE_BEGUN = _UNDER_WAY.where(
    sa.exists().where(
        IS_CURRENT_RUN,
        sa.or_(runs.c.state == RunState.DELIVERED.value, runs.c.state == RunState.RUNNING.value),
    ),
    sa.not_(deployments.c.cancelling),
)
_SET_RUN = (
    sa.update(runs)
    .where(
        runs.c.deployment_id == sa.bindparam("id"),
        runs.c.config_id == sa.bindparam("run"),
        runs.c.state == sa.bindparam("before"),
    )
    .values(state=sa.bindparam("after"))
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


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A deployment in progress on a server."""

    id: str
    config_id: str
    #: A stack or a trigger needs to be notified of the end.
    belongs: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """A deployment that was held back or released."""

    deployment_id: str
    config_id: str
    #: Whether a report of its end is expected. False if a client manages the deployment's status itself.
    awaited: bool


def server(tx: Tx, id: str, *, staying: bool = False) -> Governed | None:
    """
    Return a server's row, or None. Every deployment asks this when it starts: one read by primary key.

    ``staying`` locks the row, so that the server and its policy do not change until the transaction ends.
    """
    row = tx.preloaded.get(("policy", id)) or tx.execute_fast(_STAYING if staying else _SERVER, {"id": id})
    return None if row is None else Governed(*row)


def preload(tx: Tx, ids: Collection[str]) -> None:
    """Read and lock the rows of several servers at once, as ``server`` does with ``staying``."""
    for *row, id in tx.fetch_all(_STAYING_ALL, {"ids": rows.dump(list(ids))}):
        tx.preloaded["policy", id] = row


def stack_of_trigger(tx: Tx, id: str) -> str | None:
    """Return the stack that contains the trigger's source, or None."""
    stack_id: str | None = tx.scalar(_TRIGGERED, {"id": id})
    return stack_id


def top(tx: Tx, stack_id: str) -> Stack | None:
    """Return the root stack of this stack's tree, or None if the stack does not exist."""
    stack = stacks.find(tx, stack_id)
    return stack if stack is None or stack.root_id == stack.id else stacks.find(tx, stack.root_id)


def waiting_deployments(tx: Tx, root_id: str) -> list[tuple[str, datetime]]:
    """Return the servers whose maintenance windows this tree of stacks waits for, each with the start of the wait."""
    return [(server_id, rows.from_micros(since)) for server_id, since in tx.fetch_all(_WAITING, {"root": root_id})]


def under_way(tx: Tx, server_id: str) -> list[UnderWay]:
    """Return the deployments in progress on the server, of all projects."""
    return _under_way(tx, _UNDER_WAY, server_id)


def may_have_begun(tx: Tx, server_id: str) -> list[UnderWay]:
    """Return the deployments in progress that the server's agent has received, and is not cancelling."""
    return _under_way(tx, _MAY_HAVE_BEGUN, server_id)


def _under_way(tx: Tx, query: sa.Select[Any], server_id: str) -> list[UnderWay]:
    rows_found = tx.fetch_all(query, {"server": server_id})
    return [UnderWay(id, config_id, any(owner_ids)) for id, config_id, *owner_ids in rows_found]


def has_untold(tx: Tx, server_id: str, owner: str) -> bool:
    """Return whether the server has runs that were not sent to its agent yet."""
    return tx.execute_fast(_ANY_UNSENT, {"server": server_id, "owner": owner}) is not None


def hold_back(tx: Tx, server_id: str, owner: str, reason: str) -> list[Changed]:
    """
    Remove runs that were not sent yet from the server's documents, until its maintenance window.

    ``reason`` becomes the reason of these deployments and of those that already wait. Returns all deployments that
    changed.
    """
    removed = tx.fetch_all(_HOLD_BACK, {"server": server_id, "owner": owner, "reason": reason})
    _set_runs(tx, removed, "QUEUED", "PENDING_WINDOW")
    ids = {id for id, *_ in removed}
    waiting = tx.fetch_all(_UPDATE_REASONS, {"server": server_id, "reason": reason})
    return [_changed(row) for row in (*removed, *(row for row in waiting if row[0] not in ids))]


def release(tx: Tx, server_id: str, reason: str) -> list[Changed]:
    """Return the held deployments to the server's documents. ``reason`` becomes their reason."""
    released = tx.fetch_all(_RELEASE, {"server": server_id, "reason": reason})
    _set_runs(tx, released, "PENDING_WINDOW", "QUEUED")
    return [_changed(row) for row in released]


def _set_runs(tx: Tx, changed: Sequence[Any], before: str, after: str) -> None:
    tx.run_many(_SET_RUN, [{"id": row[0], "run": row[1], "before": before, "after": after} for row in changed])


def _changed(row: Any) -> Changed:
    id, config_id, status, signal_transport = row
    return Changed(id, config_id, status == "IN_PROGRESS" and signal_transport is not None)
