"""What policies ask of the store, and what windows do to a server's deployments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.deployment import WINDOW
from stoker.model.stack import Stack
from stoker.store import rows, stacks
from stoker.store.schema import deployments, runs, servers, triggers
from stoker.store.schema import stacks as all_stacks
from stoker.store.tx import Tx

_SERVER = sa.select(
    servers.c.project_id, servers.c.policy, servers.c.name, servers.c.stack_id, servers.c.stands_for
).where(servers.c.id == sa.bindparam("id"))
#: Agents' signs of life do not wait for this, but whoever changes or removes the server does.
_STAYING = _SERVER.with_for_update(read=True, key_share=True)
_TRIGGERED = sa.select(triggers.c.stack_id).where(triggers.c.id == sa.bindparam("id"))
#: Of a run that its agent has not been told of, on the server's own project's behalf or admitted to it.
_UNTOLD = (
    deployments.c.server_id == sa.bindparam("server"),
    deployments.c.withheld.is_(None),
    deployments.c.status == "IN_PROGRESS",
    sa.or_(deployments.c.project_id == sa.bindparam("owner"), deployments.c.admitted),
    sa.exists().where(
        runs.c.deployment_id == deployments.c.id,
        runs.c.config_id == deployments.c.config_id,
        runs.c.state == "WAITING",
        runs.c.delivered_at.is_(None),
    ),
)
_ANY_UNTOLD = sa.select(deployments.c.id).where(*_UNTOLD).limit(1)
_WITHHELD = (
    deployments.c.server_id == sa.bindparam("server"),
    deployments.c.withheld == WINDOW,
    sa.or_(deployments.c.status.is_(None), deployments.c.status != "FAILED"),
)
#: What nobody waits for has its words already.
_SAID = sa.case((deployments.c.status == "IN_PROGRESS", sa.bindparam("said")), else_=deployments.c.status_reason)
#: Since when runs of a tree of stacks are withheld from their servers, at the longest.
_HELD = (
    sa.select(deployments.c.server_id, sa.func.min(runs.c.queued_at).label("since"))
    .join(all_stacks, all_stacks.c.id == deployments.c.stack_id)
    .join(runs, sa.and_(runs.c.deployment_id == deployments.c.id, runs.c.config_id == deployments.c.config_id))
    .where(
        all_stacks.c.root_id == sa.bindparam("root"),
        deployments.c.withheld == WINDOW,
        deployments.c.status == "IN_PROGRESS",
    )
    .group_by(deployments.c.server_id)
)
_CHANGED = (deployments.c.id, deployments.c.config_id, deployments.c.status, deployments.c.signal_transport)
_WITHHOLD = (
    sa.update(deployments)
    .where(*_UNTOLD)
    .values(withheld=WINDOW, status_reason=sa.bindparam("said"))
    .returning(*_CHANGED)
)
_SAY_AGAIN = sa.update(deployments).where(*_WITHHELD).values(status_reason=_SAID).returning(*_CHANGED)
_RELEASE = sa.update(deployments).where(*_WITHHELD).values(withheld=None, status_reason=_SAID).returning(*_CHANGED)
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
    """A server's row, as far as policies go by it."""

    project_id: str
    #: As it is stored; None: it has none of its own.
    policy: str | None
    name: str
    stack_id: str | None
    #: As it is stored: resource id → id of the topmost stack, of the resources that stand for it.
    stands_for: str

    @property
    def stood_for_by(self) -> frozenset[str]:
        """The tops of the stacks that have a resource which stands for it."""
        return frozenset(rows.load(self.stands_for).values())


@dataclass(frozen=True, slots=True)
class UnderWay:
    id: str
    config_id: str
    #: A stack or a trigger has to hear of its end.
    belongs: bool


@dataclass(frozen=True, slots=True)
class Changed:
    deployment_id: str
    config_id: str
    #: Whether its end is awaited, and not by a client that made it all itself.
    awaited: bool


def server(tx: Tx, id: str, *, staying: bool = False) -> Governed | None:
    """
    One read by primary key: every deployment that begins asks this. ``staying``: it and its policy are what they are
    until this transaction ends.
    """
    row = tx.quick(_STAYING if staying else _SERVER, {"id": id})
    return None if row is None else Governed(row[0], row[1], row[2], row[3], row[4])


def stack_of_trigger(tx: Tx, id: str) -> str | None:
    """The stack whose resource was triggered, if one's was."""
    found: str | None = tx.run(_TRIGGERED, {"id": id}).scalar_one_or_none()
    return found


def top(tx: Tx, stack_id: str) -> Stack | None:
    """The stack at the top of this one's tree."""
    found = stacks.find(tx, stack_id)
    if found is None or found.root_id == found.id:
        return found
    return stacks.find(tx, found.root_id)


def held(tx: Tx, root_id: str) -> list[tuple[str, datetime]]:
    """Servers that runs of this tree of stacks wait for the windows of, and since when."""
    return [(row.server_id, rows.moment(row.since)) for row in tx.run(_HELD, {"root": root_id})]


def under_way(tx: Tx, server_id: str) -> list[UnderWay]:
    """What is to run on the server and has not ended, whosever it is."""
    return [
        UnderWay(row.id, row.config_id, any((row.stack_id, row.resource_id, row.trigger_id)))
        for row in tx.run(_UNDER_WAY, {"server": server_id})
    ]


def has_untold(tx: Tx, server_id: str, owner: str) -> bool:
    return tx.run(_ANY_UNTOLD, {"server": server_id, "owner": owner}).first() is not None


def withhold(tx: Tx, server_id: str, owner: str, said: str) -> list[Changed]:
    """Take what the server's agent was not told of out of its documents, and have what waits already say the same."""
    found = tx.run(_WITHHOLD, {"server": server_id, "owner": owner, "said": said}).all()
    _set_runs(tx, found, "WAITING", "HELD")
    return [_changed(row) for row in (*found, *_said_again(tx, server_id, said, found))]


def release(tx: Tx, server_id: str, said: str) -> list[Changed]:
    """Put what waits for a window back."""
    found = tx.run(_RELEASE, {"server": server_id, "said": said}).all()
    _set_runs(tx, found, "HELD", "WAITING")
    return [_changed(row) for row in found]


def _said_again(tx: Tx, server_id: str, said: str, but: Any) -> list[Any]:
    known = {row.id for row in but}
    return [row for row in tx.run(_SAY_AGAIN, {"server": server_id, "said": said}) if row.id not in known]


def _set_runs(tx: Tx, found: Any, before: str, after: str) -> None:
    values = [{"id": row.id, "run": row.config_id, "before": before, "after": after} for row in found]
    if values:
        tx.run(_SET_RUN, values)


def _changed(row: Any) -> Changed:
    return Changed(row.id, row.config_id, row.status == "IN_PROGRESS" and row.signal_transport is not None)
