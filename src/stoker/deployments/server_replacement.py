"""Replacement of a server's machine: ends the runs of the earlier one, and repeats on the new one what had ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from stoker.deployments import owners, run_end, service
from stoker.deployments.deadlines import DEADLINE
from stoker.deployments.env import DeploymentEnv
from stoker.model.deployment import INTERRUPTED
from stoker.model.errors import StokerError
from stoker.model.server import Server
from stoker.model.status import Action, Status
from stoker.store import deployments, rows, server_policies
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that runs the completed deployments of a server again; its key is the server's id.
RERUN = "server.rerun"
_log = structlog.get_logger("stoker.deployments")


def interrupt_runs(tx: Tx, work: Work, server: Server) -> None:
    """
    Fail the runs that the server's earlier machine may have begun. The other runs wait for the new machine.

    The runs leave the document at once. A job fails each run that belongs to a stack or trigger, as in
    ``server_removal``.
    """
    reason = f"Interrupted: server {server.name} was enrolled again while this config was running"
    for run in server_policies.may_have_begun(tx, server.id):
        deployment = deployments.find(tx, run.id, for_update=True)
        if deployment is None or deployment.config_id != run.config_id:
            continue
        interrupted = replace(deployment, held_by=INTERRUPTED)
        if not run.belongs:
            run_end.fail(tx, work, interrupted, reason)
            continue
        deployments.save(tx, interrupted)
        work.cancel(tx, DEADLINE, run.config_id)
        args = {"deployment_id": run.id, "config_id": run.config_id, "reason": reason}
        work.defer(tx, DEADLINE, run.config_id, args)
    tx.bump_document(server.id)


def rerun_later(tx: Tx, work: Work, server: Server, requested_by: str | None) -> None:
    """Defer another run of each deployment that the server has completed until now."""
    args = {"server_id": server.id, "until": rows.to_micros(tx.now), "requested_by": requested_by}
    work.defer_once(tx, RERUN, server.id, args)


def rerun(store: Store, env: DeploymentEnv, args: Mapping[str, Any]) -> None:
    """Job: start the runs, in the order of the deployments. A repetition of the job starts the missing ones."""
    with store.read() as tx:
        ids = deployments.completed(tx, args["server_id"], args["until"])
    for id in ids:
        try:
            store.write(lambda tx, id=id: _rerun(tx, env, id, args))  # type: ignore[misc]  # binds the loop's variable
        except StokerError as error:  # for example, the server's policy has changed
            _log.warning("deployment.not_rerun", deployment_id=id, reason=error.message)


def _rerun(tx: Tx, env: DeploymentEnv, id: str, args: Mapping[str, Any]) -> None:
    unlocked = deployments.find(tx, id)
    deployment = owners.lock(tx, unlocked) if unlocked else None
    if deployment is None or deployment.status != Status.COMPLETE or deployment.action == Action.DELETE:
        return
    if rows.to_micros(deployment.updated_at or deployment.created_at) <= args["until"]:
        service.restart_run(tx, env, deployment, args["requested_by"])
