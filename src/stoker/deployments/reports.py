"""
Reports of many agents in one transaction, which cost much less together than one by one.

Only reports that end a run in progress of a client's or trigger's deployment are taken together: their deployments are
locked and read in one query, their writes are sent together, and a trigger counts all its ended targets at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.deployments import run_end, runs
from stoker.deployments.env import DeploymentEnv, EndedRun, RunListener
from stoker.model.status import Status
from stoker.store import configs, deployments, targets, triggers
from stoker.store import runs as stored
from stoker.store.deployments import RunOwner
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run, as the agent of a server sent it. ``config_id`` is that of the derived config."""

    server_id: str
    config_id: str
    values: Mapping[str, Any]


def apply_together(tx: Tx, env: DeploymentEnv, reports: Sequence[Report], log_bytes: int) -> list[str | None]:
    """
    Apply the reports that can be taken together. Return the new status of each one's deployment; None: not applied.

    At most ``log_bytes`` of each stream are kept. Raises StokerError if one report cannot be applied; then roll back.
    """
    tx.is_signal = True
    owners = _find_owners(tx, reports)
    ids = [owner.id for owner in owners if owner is not None]
    if not ids:
        return [None] * len(reports)
    triggers.share_locks(tx, {owner.trigger_id for owner in owners if owner is not None and owner.trigger_id})
    locked = deployments.lock_all(tx, ids)
    configs.preload(tx, [report.config_id for report in reports])
    stored.preload_streams(tx, ids)
    targets.preload(tx, [owner.id for owner in owners if owner is not None and owner.trigger_id])
    ended: dict[RunListener, list[EndedRun]] = {}
    statuses: list[str | None] = []
    for report, owner in zip(reports, owners, strict=True):
        decode = locked.get(owner.id) if owner is not None else None
        tx.secrets = tx.new_secrets()
        before = decode() if decode is not None else None
        if before is None or (before.config_id, before.status) != (report.config_id, Status.IN_PROGRESS):
            statuses.append(None)  # changed since the first query
            continue
        after = run_end.apply_signal(tx, env.work, before, report.values, log_bytes)
        statuses.append(after.status)
        ended.setdefault(env.listeners.of(after), []).append(EndedRun(after, before.cancelling, tx.secrets))
    for listener, runs_of_owner in ended.items():
        listener.runs_ended(tx, env, runs_of_owner)
    return statuses


def _find_owners(tx: Tx, reports: Sequence[Report]) -> list[RunOwner | None]:
    """Return the deployment of each report, or None if the report cannot be taken together with others."""
    by_run: dict[tuple[str, str], RunOwner | None] = {}
    for owner in deployments.of_runs(tx, {report.config_id for report in reports}):
        key = (owner.server_id, owner.config_id)
        # A REST client may give one config to several deployments of a server.
        by_run[key] = None if key in by_run or not owner.is_plain else owner
    # ``pop``: the second report on a run is a repetition.
    return [
        None if runs.is_progress(report.values) else by_run.pop((report.server_id, report.config_id), None)
        for report in reports
    ]
