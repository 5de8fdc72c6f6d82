"""What becomes of runs whose server goes."""

from __future__ import annotations

from stoker.deployments import manage
from stoker.deployments.deadlines import DEADLINE
from stoker.store import deployments, governing, servers
from stoker.store.tx import Tx
from stoker.work import Work


def server_gone(tx: Tx, work: Work, server_id: str, name: str) -> None:
    """
    What is under way there has failed. That of a stack or a trigger fails by a job each, since those are held before
    their deployments are, and the end of one may begin or withdraw another.
    """
    servers.find(tx, server_id, hold=True)  # what is just beginning there is under way, or finds no server
    reason = f"Server {name} was removed"
    for each in governing.under_way(tx, server_id):
        work.cancel(tx, DEADLINE, each.config_id)
        if each.belongs:
            args = {"deployment_id": each.id, "config_id": each.config_id, "reason": reason}
            work.defer(tx, DEADLINE, each.config_id, args)
            continue
        held = deployments.find(tx, each.id, hold=True)
        if held is not None:
            manage.fail(tx, held, reason)
