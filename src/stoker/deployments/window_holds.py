"""
Runs that wait for the maintenance window of their server.

A run is held until the window opens. It is held again if the window closes before the agent has received the run.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from stoker.deployments import maintenance_windows, policy
from stoker.deployments.deadlines import DEADLINE, seconds_of, set_run_deadline
from stoker.deployments.policy import Policy
from stoker.store import configs, rows, server_policies
from stoker.store.notifier import deployment_topic
from stoker.store.server_policies import Changed
from stoker.store.tx import Tx
from stoker.work.port import Work

#: Kind of the job that runs when a window of a server opens or closes. Its key and argument: ``server_id``.
JOB = "server.window"
#: Status reason of a deployment until its agent reports progress.
WAITING = "Waiting for the agent"


@lru_cache(maxsize=4096)
def load_policy(text: str | None) -> Policy:
    """Return the policy in a server's row, without checking it again."""
    return Policy() if text is None else policy.read(rows.load(text))


def first_opening(tx: Tx, root_id: str) -> datetime | None:
    """
    Return when the last window opens that runs of a tree of stacks wait for.

    Returns None if no run waits, or if a run waits for a second window because no agent fetched it during the first.
    """
    found: datetime | None = None
    for server_id, since in server_policies.waiting_deployments(tx, root_id):
        server = server_policies.server(tx, server_id)
        opening = (
            maintenance_windows.find_opening(load_policy(server.policy).windows, since) if server is not None else None
        )
        if opening is None or opening <= tx.now:
            return None
        found = max(found or opening, opening)
    return found


def waiting_reason(server_name: str, opening: datetime) -> str:
    """Return the status reason of a run that waits for the window."""
    return f"Waiting for the maintenance window of {server_name}, which opens {rows.heat_time(opening)}"


def schedule_check(tx: Tx, work: Work, server_id: str, at: datetime | None) -> None:
    """Schedule ``reevaluate`` for ``at`` and cancel any earlier job. None only cancels."""
    work.cancel(tx, JOB, server_id)
    if at is not None:
        work.defer(tx, JOB, server_id, {"server_id": server_id}, at=at)


def reevaluate(tx: Tx, work: Work, server_id: str) -> None:
    """Hold or release the runs of a server after a window opened or closed or the policy changed."""
    server = server_policies.server(tx, server_id)
    if server is None:
        schedule_check(tx, work, server_id, None)
        return
    said = load_policy(server.policy).windows
    opening = maintenance_windows.find_opening(said, tx.now)
    if opening is None:
        changed = server_policies.release(tx, server_id, WAITING)
        for each in changed:
            _start_deadlines(tx, work, each)
        untold = bool(said) and server_policies.has_untold(tx, server_id, server.project_id)
        schedule_check(tx, work, server_id, maintenance_windows.find_closing(said, tx.now) if untold else None)
    else:
        changed = server_policies.hold_back(tx, server_id, server.project_id, waiting_reason(server.name, opening))
        for each in changed:
            work.cancel(tx, DEADLINE, each.config_id)
        schedule_check(tx, work, server_id, opening if changed else None)
    for each in changed:
        tx.notify(deployment_topic(each.deployment_id))
    if changed:
        tx.bump_document(server_id)


def _start_deadlines(tx: Tx, work: Work, released: Changed) -> None:
    """Set deadlines of released runs: the timeout begins when the run may begin."""
    config = configs.find(tx, released.config_id) if released.awaited else None
    seconds = seconds_of(config.inputs) if config else None
    if seconds is not None:
        set_run_deadline(tx, work, released.deployment_id, released.config_id, seconds)
