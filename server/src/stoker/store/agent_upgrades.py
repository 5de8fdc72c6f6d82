"""Queries for upgrades of agents: the last one of each server."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.model.agent_upgrade import AgentUpgrade
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_UPGRADES = Repository(AgentUpgrade, "agent_upgrades", key=("server_id",))
_ALL_OF_SERVERS = _UPGRADES.select("server_id @in(ids)")
_PAGE = _UPGRADES.select("project_id = :project_id AND server_id > :after ORDER BY server_id LIMIT :limit")
_WITH_STATUS = _UPGRADES.select("rollout_id = :rollout_id AND status = :status ORDER BY server_id")
_UNFINISHED_CANARY = _UPGRADES.select(
    "rollout_id = :rollout_id AND is_canary AND status IN ('REQUESTED', 'IN_PROGRESS') LIMIT 1"
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


def page(tx: Tx, project_id: str, limit: int, after: str = "") -> list[AgentUpgrade]:
    """Return at most ``limit`` upgrades of the project's servers, sorted by the servers' ids: those after ``after``."""
    return _UPGRADES.all(tx, _PAGE, {"project_id": project_id, "limit": limit, "after": after})


def find_of_servers(tx: Tx, server_ids: Iterable[str]) -> dict[str, AgentUpgrade]:
    """Return by server id the upgrades of these servers."""
    return {upgrade.server_id: upgrade for upgrade in _UPGRADES.several(tx, _ALL_OF_SERVERS, server_ids)}


def with_status(tx: Tx, rollout_id: str, status: str) -> list[AgentUpgrade]:
    """Return the upgrades of a rollout with this status, sorted by server."""
    return _UPGRADES.all(tx, _WITH_STATUS, {"rollout_id": rollout_id, "status": status})


def has_unfinished_canary(tx: Tx, rollout_id: str) -> bool:
    """Return whether a canary of the rollout has not ended."""
    return _UPGRADES.first(tx, _UNFINISHED_CANARY, {"rollout_id": rollout_id}) is not None


def delete(tx: Tx, server_id: str) -> None:
    """Delete the server's upgrade."""
    _UPGRADES.delete(tx, server_id)
