"""
Upgrades of agents to the program of this server's version.

A request stores one row per server. The document of each agent then offers the program by its digest. The agent
replaces itself and reports the outcome, which removes the offer. If a rollout has canaries, the other servers wait
until all canaries have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import structlog
from msgspec.structs import replace

from stoker.model.agent_upgrade import AgentUpgrade, UpgradeStatus
from stoker.model.errors import Conflict
from stoker.model.server import Kind, Server
from stoker.servers.agent_bundle import AgentBundle
from stoker.store import agent_upgrades, servers
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.servers")

#: Seconds within which a new program must reach Stoker. Otherwise the agent returns to the old program.
CONTACT_SECONDS = 120
#: ``requested_by`` of upgrades that the setting ``agent_update`` starts.
AUTOMATIC = "the setting agent_update"


class AgentUpgrades:
    """Requests upgrades, offers programs to agents and records the outcomes."""

    def __init__(self, bundle: AgentBundle, *, is_automatic: bool = False) -> None:
        self._bundle = bundle
        self._is_automatic = is_automatic

    def request(
        self, tx: Tx, chosen: Sequence[Server], *, canary: int, pause_on_failure: bool, requested_by: str
    ) -> list[AgentUpgrade]:
        """
        Request the upgrade of these servers' agents; the first ``canary`` of them go first (0: all at once).

        Raises Conflict if a server has no agent that can upgrade itself.
        """
        for server in chosen:
            _check_upgradable(server)
        rollout_id = str(uuid4())
        has_canaries = 0 < canary < len(chosen)
        upgrades = []
        for number, server in enumerate(chosen):
            is_canary = has_canaries and number < canary
            status = UpgradeStatus.REQUESTED if is_canary or not has_canaries else UpgradeStatus.WAITING
            upgrades.append(
                AgentUpgrade(
                    server_id=server.id,
                    project_id=server.project_id,
                    rollout_id=rollout_id,
                    status=status,
                    version=self._bundle.version,
                    sha256=self._bundle.sha256,
                    from_version=server.agent_version,
                    requested_by=requested_by,
                    requested_at=tx.now,
                    is_canary=is_canary,
                    pause_on_failure=pause_on_failure,
                )
            )
        for upgrade in sorted(upgrades, key=lambda upgrade: upgrade.server_id):
            withdraw(tx, upgrade.server_id)
            agent_upgrades.add(tx, upgrade)
            tx.bump_document(upgrade.server_id)
        return upgrades

    def observe_version(self, tx: Tx, server_id: str, version: str | None) -> None:
        """Request an upgrade, if upgrades are automatic and the agent has another version and none was tried yet."""
        if not self._is_automatic or version is None or version == self._bundle.version:
            return
        earlier = agent_upgrades.find(tx, server_id)
        server = servers.find(tx, server_id)
        if server is None or server.kind is Kind.LOCAL or (earlier and earlier.sha256 == self._bundle.sha256):
            return
        self.request(tx, [server], canary=0, pause_on_failure=False, requested_by=AUTOMATIC)

    def offer(self, tx: Tx, server_id: str) -> Mapping[str, Any] | None:
        """Return the member ``agent`` of the server's document, or None if no upgrade is due."""
        upgrade = agent_upgrades.find(tx, server_id)
        if upgrade is None or not upgrade.status.is_offered:
            return None
        return {
            "id": upgrade.rollout_id,
            "version": upgrade.version,
            "sha256": upgrade.sha256,
            "seconds": CONTACT_SECONDS,
        }

    def record(
        self,
        tx: Tx,
        server_id: str,
        rollout_id: str,
        status: UpgradeStatus,
        reason: str | None,
        *,
        sha256: str | None = None,
    ) -> None:
        """
        Record what an agent reports about its upgrade. A report about a replaced upgrade changes nothing.

        ``sha256`` is the digest of the program that reports; an upgrade is not complete if that is another one.
        """
        tx.advisory_lock(f"agent upgrades {rollout_id}")
        upgrade = agent_upgrades.find(tx, server_id, for_update=True)
        if upgrade is None or upgrade.rollout_id != rollout_id or not upgrade.status.is_offered:
            return
        if status is UpgradeStatus.COMPLETE and sha256 not in (None, upgrade.sha256):
            status, reason = UpgradeStatus.FAILED, "the agent runs another program than the offered one"
        agent_upgrades.save(tx, replace(upgrade, status=status, reason=reason))
        if status.is_offered:
            return
        tx.bump_document(server_id)
        write = _log.info if status is UpgradeStatus.COMPLETE else _log.warning
        tx.after_commit(
            partial(write, "agent.upgrade_ended", server_id=server_id, status=status.value, reason=reason or "")
        )
        if status is not UpgradeStatus.COMPLETE and upgrade.pause_on_failure:
            _set_waiting(tx, rollout_id, UpgradeStatus.PAUSED)
        elif upgrade.is_canary and not agent_upgrades.has_unfinished_canary(tx, rollout_id):
            _set_waiting(tx, rollout_id, UpgradeStatus.REQUESTED)

    def cancel(self, tx: Tx, server: Server) -> None:
        """Withdraw an upgrade that the agent has not begun, see ``withdraw``. Raises Conflict if there is none."""
        upgrade = agent_upgrades.find(tx, server.id, for_update=True)
        if upgrade is None or upgrade.status is UpgradeStatus.IN_PROGRESS:
            raise Conflict(f"The agent of server {server.name!r} has no upgrade that can be cancelled.")
        withdraw(tx, server.id)
        tx.bump_document(server.id)


def withdraw(tx: Tx, server_id: str) -> None:
    """
    Delete the upgrade of a server.

    Without the last unfinished canary, nothing starts the servers that wait for the canaries: they become PAUSED.
    """
    upgrade = agent_upgrades.find(tx, server_id)
    if upgrade is None:
        return
    tx.advisory_lock(f"agent upgrades {upgrade.rollout_id}")
    agent_upgrades.delete(tx, server_id)
    if upgrade.is_canary and not agent_upgrades.has_unfinished_canary(tx, upgrade.rollout_id):
        _set_waiting(tx, upgrade.rollout_id, UpgradeStatus.PAUSED)


def _set_waiting(tx: Tx, rollout_id: str, status: UpgradeStatus) -> None:
    for upgrade in agent_upgrades.with_status(tx, rollout_id, UpgradeStatus.WAITING.value):
        agent_upgrades.save(tx, replace(upgrade, status=status))
        tx.bump_document(upgrade.server_id)


def _check_upgradable(server: Server) -> None:
    if server.kind is Kind.LOCAL:
        raise Conflict(f"Server {server.name!r} is a process of this machine, and its agent is always Stoker's own.")
    if not server.key_generation:
        raise Conflict(f"Server {server.name!r} has no agent that could be upgraded: enroll the server first.")
