"""The end of a run that nobody reports on in time."""

from __future__ import annotations

from datetime import timedelta

from stoker.model.deployment import Deployment
from stoker.store import deployments
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that ends a run whose time is over.
DEADLINE = "deployment.deadline"
#: The agent itself ends the hook in time; the server gives up only when no word of that comes.
GRACE = timedelta(seconds=15)


def expect(tx: Tx, work: Work, deployment: Deployment, seconds: float) -> None:
    """Its current run may take so long; one that waits for its server's window has its time from then on."""
    if deployment.withheld is None:
        expect_run(tx, work, deployment.id, deployment.config_id, seconds)


def expect_run(tx: Tx, work: Work, deployment_id: str, config_id: str, seconds: float) -> None:
    """That run may take so long from now on."""
    args = {"deployment_id": deployment_id, "config_id": config_id}
    work.defer(tx, DEADLINE, config_id, args, at=tx.now + timedelta(seconds=seconds) + GRACE)


def server_gone(tx: Tx, work: Work, server_id: str, name: str) -> None:
    """
    A server goes with its stack: what runs there and is no stack's own has failed. By jobs, since whoever they belong
    to is held before they are.
    """
    for id, config_id in deployments.alone_on(tx, server_id):
        work.cancel(tx, DEADLINE, config_id)
        args = {"deployment_id": id, "config_id": config_id, "reason": f"Server {name} was removed"}
        work.defer(tx, DEADLINE, config_id, args)


def call_off(tx: Tx, work: Work, deployment: Deployment) -> None:
    work.cancel(tx, DEADLINE, deployment.config_id)
