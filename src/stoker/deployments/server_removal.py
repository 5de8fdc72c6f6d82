"""Removal of a server: ends the runs on it."""

from __future__ import annotations

from stoker.deployments import run_end
from stoker.deployments.deadlines import DEADLINE
from stoker.store import deployments, server_policies, servers
from stoker.store.tx import Tx
from stoker.work import Work


def release_server(tx: Tx, work: Work, server_id: str, name: str) -> None:
    """
    Fail all runs of a server that is about to be removed.

    A job fails each run that belongs to a stack or trigger: the lock order requires locking stack and trigger before
    the deployment, and the end of a run may start or withdraw another.
    """
    # a run that starts concurrently is visible after this lock, or finds no server
    servers.find(tx, server_id, for_update=True)
    reason = f"Server {name} was removed"
    for run in server_policies.under_way(tx, server_id):
        if run.belongs:
            work.cancel(tx, DEADLINE, run.config_id)
            args = {"deployment_id": run.id, "config_id": run.config_id, "reason": reason}
            work.defer(tx, DEADLINE, run.config_id, args)
            continue
        deployment = deployments.find(tx, run.id, for_update=True)
        if deployment is not None:
            run_end.fail(tx, work, deployment, reason)
