"""
Runs that wait for the maintenance window of their server.

A run is held until the window opens. It is held again if the window closes before the agent has received the run.
``deployments.server_runs`` holds and releases the runs.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from stoker.policy import rules, windows
from stoker.policy.rules import Policy
from stoker.store import rows, server_policies
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that runs when a window of a server opens or closes. Its key and argument: ``server_id``.
JOB = "server.window"


@lru_cache(maxsize=4096)
def load_policy(text: str | None) -> Policy:
    """Return the policy in a server's row, without checking it again."""
    return Policy() if text is None else rules.read(rows.load(text))


def first_opening(tx: Tx, root_id: str) -> datetime | None:
    """
    Return when the last window opens that runs of a tree of stacks wait for. None: no run waits, or one missed its
    first window because no agent fetched it.
    """
    latest: datetime | None = None
    for server_id, since in server_policies.waiting_deployments(tx, root_id):
        server = server_policies.server(tx, server_id)
        opening = windows.find_opening(load_policy(server.policy).windows, since) if server is not None else None
        if opening is None or opening <= tx.now:
            return None
        latest = max(latest or opening, opening)
    return latest


def waiting_reason(server_name: str, opening: datetime) -> str:
    """Return the status reason of a run that waits for the window."""
    return f"Waiting for the maintenance window of {server_name}, which opens {rows.heat_time(opening)}"


def schedule_check(tx: Tx, work: Work, server_id: str, at: datetime | None) -> None:
    """Schedule the job that holds or releases the server's runs in place of any earlier one. None only cancels."""
    work.cancel(tx, JOB, server_id)
    if at is not None:
        work.defer(tx, JOB, server_id, {"server_id": server_id}, at=at)
