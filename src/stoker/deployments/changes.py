"""Changes of deployments by REST clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.deployments import owners, run_end, service
from stoker.deployments.env import DeploymentEnv
from stoker.deployments.owners import Client
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict
from stoker.model.status import Status
from stoker.store import deployments, runs
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx


def change(
    tx: Tx, env: DeploymentEnv, deployment: Deployment, changes: Mapping[str, Any], requested_by: str
) -> Deployment:
    """
    Apply the changes that a REST client requests.

    Another config, or IN_PROGRESS for a deployment that has ended, starts another run. A status that ends the
    deployment has the same consequences as a report. A deployment that runs again gets a copy of its config, because
    agents run each config once.

    Raises Conflict if a stack decides what the deployment runs, DeploymentRefused, EntityNotFound.
    """
    before = owners.lock(tx, deployment)
    wanted = replace(before, **changes, updated_at=tx.now)
    reopens = _is_pending(wanted) and not _is_pending(before)
    if wanted.config_id == before.config_id and not reopens:
        changed = _change_status(tx, env, before, wanted, requested_by)
    elif before.resource_id is not None:
        raise Conflict(
            f"The deployment ({before.id}) belongs to a resource of the stack ({before.stack_id}), which decides what"
            " it runs: update the stack, or retry the deployment."
        )
    else:
        changed = _start(tx, env, before, wanted, requested_by)
        if reopens:
            env.listeners.of(changed).run_restarted(tx, env, changed)
    if _is_pending(before) and changed.has_ended:
        env.listeners.of(changed).run_ended(tx, env, changed, cancelled=before.cancelling)
    return changed


def _is_pending(deployment: Deployment) -> bool:
    return deployment.status == Status.IN_PROGRESS


def _change_status(tx: Tx, env: DeploymentEnv, before: Deployment, wanted: Deployment, requested_by: str) -> Deployment:
    if not wanted.has_ended:
        return run_end.save(tx, wanted)
    if before.status is None:
        return _start_unstarted(tx, env, wanted, requested_by)
    return run_end.finish_run(tx, env.work, replace(wanted, cancelling=False))


def _start(tx: Tx, env: DeploymentEnv, before: Deployment, wanted: Deployment, requested_by: str) -> Deployment:
    if wanted.config_id != before.config_id:
        admitted = service.authorize(tx, env, wanted, requested_by)
        # The new config itself determines how results return.
        service.close_transport(tx, env, Client(), before)
        changed = replace(admitted, signal_transport=None, cancelling=False, changed=None, changed_items=0)
        service.supersede_run(tx, env.work, before, changed)
        return _record_run(tx, env, changed, requested_by)
    if before.status is None:
        return _start_unstarted(tx, env, service.authorize(tx, env, wanted, requested_by), requested_by)
    started = service.restart_run(tx, env, replace(wanted, status=before.status), requested_by)
    if wanted.status_reason != before.status_reason and started.held_by is None:
        started = run_end.save(tx, replace(started, status_reason=wanted.status_reason))
    return started


def _start_unstarted(tx: Tx, env: DeploymentEnv, wanted: Deployment, requested_by: str) -> Deployment:
    """Start the first run of a deployment that was stored without a status."""
    deployments.save(tx, wanted)
    runs.forget(tx, wanted.id)
    tx.notify(deployment_topic(wanted.id))
    return _record_run(tx, env, wanted, requested_by)


def _record_run(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str) -> Deployment:
    """Record a run of the client's config, which may have ended already."""
    service.record_run(tx, deployment, requested_by)
    return run_end.finish_run(tx, env.work, deployment) if deployment.has_ended else deployment
