"""Changes of deployments by REST clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from stoker.deployments import owners, run_end, service
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.signals import read_code
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict
from stoker.model.status import Status
from stoker.model.wake import Owner, RunRestarted
from stoker.store import configs, deployments, runs
from stoker.store.tx import Tx


def change(
    tx: Tx, env: DeploymentEnv, deployment: Deployment, changes: Mapping[str, Any], requested_by: str
) -> Deployment:
    """
    Apply the changes of a REST client. Another config, or IN_PROGRESS after an end, starts a run; a status that ends
    the deployment acts as a report. Agents run each config once, so what the server may have run is copied.

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
            tx.wake(Owner.of(changed), RunRestarted(changed))
    return service.tell_end(tx, env, before, changed)


def _is_pending(deployment: Deployment) -> bool:
    return deployment.status == Status.IN_PROGRESS


def _change_status(tx: Tx, env: DeploymentEnv, before: Deployment, wanted: Deployment, requested_by: str) -> Deployment:
    if before.status is None and wanted.has_ended:
        return _start_unstarted(tx, wanted, requested_by)
    if not wanted.has_ended:
        return run_end.save(tx, wanted, deployments.save)
    deployments.save(tx, wanted)
    code = before.status_code if wanted.output_values == before.output_values else read_code(wanted.output_values)
    return run_end.finish_run(tx, env.work, replace(wanted, cancelling=False, status_code=code))


def _start(tx: Tx, env: DeploymentEnv, before: Deployment, wanted: Deployment, requested_by: str) -> Deployment:
    if wanted.config_id != before.config_id:
        config = configs.get(tx, wanted.config_id, wanted.project_id)
        # The new config itself determines how results return.
        return service.run_config(tx, env, replace(wanted, signal_transport=None), config, requested_by, before)
    if before.status is None:
        config = configs.get(tx, wanted.config_id, wanted.project_id)
        return _start_unstarted(tx, service.authorize(tx, env, wanted, config, requested_by), requested_by)
    started = service.restart_run(tx, env, before, requested_by, wanted)
    if wanted.status_reason != before.status_reason and started.held_by is None:
        started = run_end.save(tx, replace(started, status_reason=wanted.status_reason))
    return started


def _start_unstarted(tx: Tx, wanted: Deployment, requested_by: str) -> Deployment:
    """Start the first run of a deployment that was stored without a status."""
    runs.forget(tx, wanted.id)
    return run_end.save(tx, service.queue_run(tx, wanted, requested_by, number=1), deployments.save)
