"""Holds and releases the runs of a server when a maintenance window opens or closes, or when the policy changes."""

from __future__ import annotations

from stoker.deployments.deadlines import DEADLINE, seconds_of, set_run_deadline
from stoker.policy import holds, windows
from stoker.store import configs, server_policies
from stoker.store.notifier import deployment_topic
from stoker.store.server_policies import Changed
from stoker.store.tx import Tx
from stoker.work import Work

#: Status reason of a deployment until its agent reports progress.
WAITING = "Waiting for the agent"


def reevaluate(tx: Tx, work: Work, server_id: str) -> None:
    """Hold or release the runs of a server after a window opened or closed or the policy changed."""
    server = server_policies.server(tx, server_id)
    if server is None:
        holds.schedule_check(tx, work, server_id, None)
        return
    server_windows = holds.load_policy(server.policy).windows
    opening = windows.find_opening(server_windows, tx.now)
    if opening is None:
        changed = server_policies.release(tx, server_id, WAITING)
        for run in changed:
            _start_deadline(tx, work, run)
        is_untold = bool(server_windows) and server_policies.has_untold(tx, server_id, server.project_id)
        closing = windows.find_closing(server_windows, tx.now) if is_untold else None
        holds.schedule_check(tx, work, server_id, closing)
    else:
        reason = holds.waiting_reason(server.name, opening)
        changed = server_policies.hold_back(tx, server_id, server.project_id, reason)
        for run in changed:
            work.cancel(tx, DEADLINE, run.config_id)
        holds.schedule_check(tx, work, server_id, opening if changed else None)
    for run in changed:
        tx.notify(deployment_topic(run.deployment_id))
    if changed:
        tx.bump_document(server_id)


def _start_deadline(tx: Tx, work: Work, released: Changed) -> None:
    """Set the deadline of a released run: the timeout begins when the run may begin."""
    config = configs.find(tx, released.config_id) if released.awaited else None
    seconds = seconds_of(config.inputs) if config else None
    if seconds is not None:
        set_run_deadline(tx, work, released.deployment_id, released.config_id, seconds)
