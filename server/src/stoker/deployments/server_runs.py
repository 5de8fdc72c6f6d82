"""
The runs of a server whose circumstances change.

Runs are held or released when a maintenance window opens or closes, or when the policy changes. They fail when the
server is removed, or when another machine takes its place. The new machine repeats what had ended on the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.deployments import owners, run_end, service
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.run_end import DEADLINE, cancel_deadline, seconds_of, set_deadline
from stoker.deployments.run_plan import WAITING, undoes
from stoker.model.deployment import INTERRUPTED
from stoker.model.errors import StokerError, Unavailable
from stoker.model.server import Server
from stoker.model.stack import Action, Status
from stoker.policy import authorizer, windows
from stoker.store import configs, deployments, held_runs, rows, servers
from stoker.store.deployments import POLLING
from stoker.store.held_runs import Changed, UnderWay
from stoker.store.notifier import deployment_topic
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work


def reevaluate(tx: Tx, work: Work, server_id: str) -> None:
    """Hold or release the runs of a server after a window opened or closed or the policy changed."""
    server = servers.find_governed(tx, server_id)
    if server is None:
        authorizer.schedule_check(tx, work, server_id, None)
        return
    server_windows = authorizer.load_policy(server.policy).windows
    opening = windows.find_opening(server_windows, tx.now)
    if opening is None:
        changed = held_runs.release(tx, server_id, WAITING)
        for run in changed:
            _start_deadline(tx, work, run)
        is_untold = bool(server_windows) and held_runs.has_untold(tx, server_id, server.project_id)
        check_at = windows.find_change(server_windows, tx.now) if is_untold else None
        authorizer.schedule_check(tx, work, server_id, check_at)
    else:
        reason = authorizer.waiting_reason(server.name, opening)
        changed = held_runs.hold_back(tx, server_id, server.project_id, reason)
        for run in changed:
            cancel_deadline(tx, work, run.config_id)
        # An agent may have a run whose delivery is not recorded yet. If it was not sent after all, it is held later.
        is_untold = held_runs.has_untold(tx, server_id, server.project_id)
        check_at = min(opening, tx.now + POLLING) if is_untold else opening
        authorizer.schedule_check(tx, work, server_id, check_at if changed or is_untold else None)
    for run in changed:
        tx.notify(deployment_topic(run.deployment_id))
    if changed:
        tx.bump_document(server_id)


def _start_deadline(tx: Tx, work: Work, released: Changed) -> None:
    """Set the deadline of a released run: the timeout begins when the run may begin."""
    config = configs.find(tx, released.config_id) if released.awaited else None
    seconds = seconds_of(config.inputs) if config else None
    if config is not None and seconds is not None:
        limits_queue = undoes(config, released.mode)
        set_deadline(tx, work, released.deployment_id, released.config_id, seconds, limits_queue=limits_queue)


def release_server(tx: Tx, work: Work, server_id: str, name: str) -> None:
    """Fail all runs of a server that is about to be removed: by a job, if they belong to a stack or trigger."""
    # a run that starts concurrently is visible after this lock, or finds no server
    servers.find(tx, server_id, for_update=True)
    reason = f"Server {name} was removed"
    for run in held_runs.under_way(tx, server_id):
        if run.belongs:
            _fail_later(tx, work, run, reason)
            continue
        deployment = deployments.find(tx, run.id, for_update=True)
        if deployment is not None:
            run_end.fail(tx, work, deployment, reason)


#: Kind of the job that runs deployments of a server again; its key is the server's id.
RERUN = "server.rerun"
_log = structlog.get_logger("stoker.deployments")


def interrupt_runs(tx: Tx, work: Work, server: Server) -> None:
    """
    Fail the runs that the server's earlier machine may have begun: by a job those of stacks and triggers. They leave
    the document at once; the other runs wait for the new machine.
    """
    reason = f"Interrupted: server {server.name} was enrolled again while this config was running"
    for run in held_runs.under_way(tx, server.id, received=True):
        deployment = deployments.find(tx, run.id, for_update=True)
        if deployment is None or deployment.config_id != run.config_id:
            continue
        interrupted = replace(deployment, held_by=INTERRUPTED)
        if not run.belongs:
            run_end.fail(tx, work, interrupted, reason)
            continue
        deployments.save(tx, interrupted)
        _fail_later(tx, work, run, reason)
    tx.bump_document(server.id)


def _fail_later(tx: Tx, work: Work, run: UnderWay, reason: str) -> None:
    """
    Let a job fail a run of a stack or trigger: their locks come before the deployment's, and the end of a run may start
    or withdraw another.
    """
    args = {"deployment_id": run.id, "config_id": run.config_id, "reason": reason}
    work.defer_once(tx, DEADLINE, run.config_id, args)


def rerun_later(tx: Tx, work: Work, server: Server, requested_by: str | None) -> None:
    """Defer another run of the server's deployments until now: of stacks, and what clients and triggers completed."""
    args = {"server_id": server.id, "until": rows.to_micros(tx.now), "requested_by": requested_by}
    work.defer_once(tx, RERUN, server.id, args)


def rerun(store: Store, env: DeploymentEnv, args: Mapping[str, Any]) -> None:
    """Start the runs of clients' and triggers' deployments in order; the job may be repeated."""
    with store.read() as tx:
        ids = deployments.completed(tx, args["server_id"], args["until"])
    for id in ids:
        write_part(store, partial(_rerun, env=env, id=id, args=args), deployment_id=id)


def write_part(store: Store, do: Callable[[Tx], None], **subject: str) -> None:
    """
    Do a part of a job in a transaction of its own. The job goes on after an error, which is logged with ``subject``.

    Raises Unavailable, after which the job is repeated.
    """
    try:
        store.write(do)
    except Unavailable:
        raise
    except StokerError as error:  # for example, the server's policy has changed
        _log.warning("job.part_refused", **subject, reason=error.message)
    except Exception:
        _log.exception("job.part_failed", **subject)


def _rerun(tx: Tx, env: DeploymentEnv, id: str, args: Mapping[str, Any]) -> None:
    deployment = owners.find_locked(tx, id)
    if deployment is None or deployment.status != Status.COMPLETE or deployment.action == Action.DELETE:
        return
    if rows.to_micros(deployment.updated_at or deployment.created_at) <= args["until"]:
        service.restart_run(tx, env, deployment, args["requested_by"])
