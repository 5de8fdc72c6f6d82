"""Queries for upgrades of agents: the last one of each server."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stoker.model.agent_upgrade import AgentUpgrade
from stoker.store.query import exists
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_UPGRADES = Repository(AgentUpgrade, "agent_upgrades", key=("server_id",))
add, save, find, delete = _UPGRADES.add, _UPGRADES.save, _UPGRADES.find, _UPGRADES.delete
_list_after: Callable[[Tx, str, str, int], list[AgentUpgrade]] = _UPGRADES.lister(
    "project_id = :project_id AND server_id > :after ORDER BY server_id LIMIT :limit"
)
#: Return the upgrades of a rollout with a status, sorted by server.
with_status: Callable[[Tx, str, str], list[AgentUpgrade]] = _UPGRADES.lister(
    "rollout_id = :rollout_id AND status = :status ORDER BY server_id"
)
#: Return whether a canary of a rollout has not ended.
has_unfinished_canary: Callable[[Tx, str], bool] = exists(
    "SELECT 1 FROM agent_upgrades WHERE rollout_id = :rollout_id AND is_canary"
    " AND status IN ('REQUESTED', 'IN_PROGRESS') LIMIT 1"
)


def page(tx: Tx, project_id: str, limit: int, after: str = "") -> list[AgentUpgrade]:
    """Return at most ``limit`` upgrades of the project's servers, sorted by the servers' ids: those after ``after``."""
    return _list_after(tx, project_id, after, limit)


def find_of_servers(tx: Tx, server_ids: Iterable[str]) -> dict[str, AgentUpgrade]:
    """Return by server id the upgrades of these servers."""
    return {upgrade.server_id: upgrade for upgrade in _UPGRADES.find_several(tx, server_ids)}
