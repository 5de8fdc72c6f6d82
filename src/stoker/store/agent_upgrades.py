"""Queries for upgrades of agents: the last one of each server."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from stoker.model.agent_upgrade import AgentUpgrade
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import agent_upgrades
from stoker.store.tx import Tx

_UPGRADES = Repository(AgentUpgrade, agent_upgrades, key=("server_id",))
_OF_SERVERS = sa.select(agent_upgrades.c.server_id).where(statements.AnyOf(agent_upgrades.c.server_id))
_ALL_OF_SERVERS = _UPGRADES.select(statements.AnyOf(agent_upgrades.c.server_id))
_PAGE = (
    _UPGRADES.by("project_id")
    .where(agent_upgrades.c.server_id > sa.bindparam("after"))
    .order_by(agent_upgrades.c.server_id)
    .limit(sa.bindparam("limit"))
)
_WITH_STATUS = (
    _UPGRADES.by("rollout_id")
    .where(agent_upgrades.c.status == sa.bindparam("status"))
    .order_by(agent_upgrades.c.server_id)
)
_UNFINISHED_CANARY = (
    _UPGRADES.by("rollout_id")
    .where(
        agent_upgrades.c.is_canary,
        sa.or_(agent_upgrades.c.status == "REQUESTED", agent_upgrades.c.status == "IN_PROGRESS"),
    )
    .limit(1)
)


def add(tx: Tx, new: AgentUpgrade) -> None:
    """Insert the upgrade. The server has no earlier one."""
    _UPGRADES.add(tx, new)


def save(tx: Tx, changed: AgentUpgrade) -> None:
    """Update the row."""
    _UPGRADES.save(tx, changed)


def find(tx: Tx, server_id: str, *, for_update: bool = False) -> AgentUpgrade | None:
    """Return the server's last upgrade, or None."""
    return _UPGRADES.find(tx, server_id, for_update=for_update)


def of_servers(tx: Tx, server_ids: Collection[str]) -> set[str]:
    """Return those of the servers that have an upgrade, in any state."""
    return {row[0] for row in tx.fetch_all(_OF_SERVERS, {"ids": rows.dump(list(server_ids))})}


def page(tx: Tx, project_id: str, limit: int, after: str = "") -> list[AgentUpgrade]:
    """Return at most ``limit`` upgrades of the project's servers, sorted by the servers' ids: those after ``after``."""
    return _UPGRADES.all(tx, _PAGE, {"project_id": project_id, "limit": limit, "after": after})


def find_of_servers(tx: Tx, server_ids: Iterable[str]) -> dict[str, AgentUpgrade]:
    """Return by server id the upgrades of these servers."""
    return {
        upgrade.server_id: upgrade
        for upgrade in _UPGRADES.all(tx, _ALL_OF_SERVERS, {"ids": rows.dump(list(server_ids))})
    }


def with_status(tx: Tx, rollout_id: str, status: str) -> list[AgentUpgrade]:
    """Return the upgrades of a rollout with this status, sorted by server."""
    return _UPGRADES.all(tx, _WITH_STATUS, {"rollout_id": rollout_id, "status": status})


def has_unfinished_canary(tx: Tx, rollout_id: str) -> bool:
    """Return whether a canary of the rollout has not ended."""
    return _UPGRADES.first(tx, _UNFINISHED_CANARY, {"rollout_id": rollout_id}) is not None


def delete(tx: Tx, server_id: str) -> None:
    """Delete the server's upgrade."""
    _UPGRADES.delete(tx, server_id)
