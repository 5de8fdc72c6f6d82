"""
Reports of agents, in batches: each is applied as a single signal is, but their rows are read and locked together.

Every report has its own known secrets, and its writes follow with the next query. The owners of the runs are advanced
at the end of the transaction (``Tx.wake``): a trigger counts all of its ended targets at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.deployments import run_end, service
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.runs import SUPERSEDED, log_rejection
from stoker.model.errors import EntityNotFound
from stoker.store import configs, deployments, stacks, targets, triggers
from stoker.store.deployments import RunOwner
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run, as the agent of a server sent it. ``config_id`` is that of the derived config."""

    server_id: str
    config_id: str
    values: Mapping[str, Any]


def apply(tx: Tx, env: DeploymentEnv, reports: Sequence[Report], log_bytes: int) -> list[str | EntityNotFound | None]:
    """
    Apply reports. Return each one's status, or EntityNotFound if its server has no such run. At most ``log_bytes`` of
    each stream are kept. Raises any other error of a report; then roll back.
    """
    tx.is_signal = True
    owners = deployments.find_owners(tx, [(report.server_id, report.config_id) for report in reports])
    _lock(tx, list(owners.values()))
    results: list[str | EntityNotFound | None] = []
    for report in reports:
        owner = owners.get((report.server_id, report.config_id))
        tx.secrets = tx.new_secrets()
        deployment = deployments.find(tx, owner.id) if owner else None
        if deployment is None:
            results.append(EntityNotFound.of("Run", report.config_id))
        elif deployment.config_id != report.config_id:
            log_rejection(tx, deployment.id, report.config_id, SUPERSEDED)
            results.append(deployment.status)
        else:
            wakes = bool(owner and owner.is_checked)
            changed = run_end.apply_signal(tx, env.work, deployment, report.values, log_bytes, wakes=wakes)
            results.append(service.tell_end(tx, env, deployment, changed).status)
    return results


def _lock(tx: Tx, owners: Sequence[RunOwner]) -> None:
    """Lock stacks, triggers and deployments, in this order, and read what the reports need."""
    for root_id in sorted({owner.root_id for owner in owners if owner.root_id is not None}):
        stacks.lock(tx, root_id)
    triggers.share_locks(tx, {owner.trigger_id for owner in owners if owner.trigger_id is not None})
    deployments.prime(tx, [owner.id for owner in owners], for_update=True)
    configs.prime(tx, [owner.config_id for owner in owners])
    triggered = [owner.id for owner in owners if owner.trigger_id is not None]
    if triggered:
        targets.prime(tx, triggered)
