"""Actions of users on one deployment, with or without a resource: cancel, retry, change, delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.deployments import cancellation, deadlines, service, standalone
from stoker.model.deployment import Deployment
from stoker.model.errors import ActionInProgress, Conflict, EntityNotFound
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import operations, signals
from stoker.stacks.engine import Engine
from stoker.stacks.engine.commit import wake_resource
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, prepare_again
from stoker.store import deployments, resources, stacks
from stoker.store.tx import Tx


def cancel(tx: Tx, engine: Engine, known: Deployment, by: str, *, force: bool = False) -> Deployment:
    """
    Cancel the current run of a deployment.

    The run ends when its agent has stopped it; with ``force`` it ends now. Raises Conflict if the deployment has ended.
    """
    held = _lock(tx, known)
    if held.status != Status.IN_PROGRESS:
        raise Conflict(f"The deployment ({held.id}) is {held.status or 'not under way'}: there is nothing to cancel.")
    stop = cancellation.force_fail if force else cancellation.cancel
    stopped = stop(tx, held, f"Cancelled by {by}")
    if stopped.status != Status.IN_PROGRESS:
        signals.report(tx, engine, stopped, before=held)
    return stopped


def retry(tx: Tx, engine: Engine, known: Deployment, by: str) -> Deployment:
    """
    Run a failed deployment again.

    A deployment of a stack is retried by an update of the stack with its present template. Raises Conflict if the
    deployment has not failed or the stack permits no retry.
    """
    held = _lock(tx, known)
    if held.status != Status.FAILED:
        raise Conflict(f"The deployment ({held.id}) is {held.status or 'not under way'}: only what failed is retried.")
    if held.resource_id is not None:
        return _retry_in_stack(tx, engine, held)
    begun = standalone.begin_again(tx, engine.env, held, by)
    engine.env.owners.of(begun).run_restarted(tx, engine.env, begun)
    return begun


def change(tx: Tx, engine: Engine, known: Deployment, changes: Mapping[str, Any], by: str) -> Deployment:
    """
    Apply the changes that a REST client requests.

    Another config, or IN_PROGRESS for a deployment that has ended, starts another run. A status that ends the
    deployment has the same consequences as a report. A deployment that runs again gets a copy of its config, because
    agents run each config once.

    Raises Conflict if a stack decides what the deployment runs, DeploymentRefused, EntityNotFound.
    """
    held = _lock(tx, known)
    changed = replace(held, **changes, updated_at=tx.now)
    if changed.config_id == held.config_id and not (_is_pending(changed) and not _is_pending(held)):
        if changed.has_ended:
            changed = replace(changed, cancelling=False)
        ends_unstarted = held.status is None and changed.has_ended
        begun = service.start_first(tx, changed, by) if ends_unstarted else service.save(tx, changed)
    elif held.resource_id is not None:
        raise Conflict(
            f"The deployment ({held.id}) belongs to a resource of the stack ({held.stack_id}), which decides what it"
            " runs: update the stack, or retry the deployment."
        )
    else:
        begun = _restart(tx, engine, held, changed, by)
    if _is_pending(held):
        signals.report(tx, engine, begun, before=held)
    return begun


def _is_pending(deployment: Deployment) -> bool:
    return deployment.status == Status.IN_PROGRESS


def _restart(tx: Tx, engine: Engine, held: Deployment, changed: Deployment, by: str) -> Deployment:
    using = engine.env
    if changed.config_id != held.config_id:
        entered = service.authorize(tx, changed, by, authorizer=using.authorizer)
        begun = standalone.change_config(tx, using, held, entered, by)
    elif held.status is None:
        begun = service.start_first(tx, service.authorize(tx, changed, by, authorizer=using.authorizer), by)
    else:
        begun = standalone.begin_again(tx, using, replace(changed, status=held.status), by)
        if changed.status_reason != held.status_reason and begun.held_by is None:
            begun = service.save(tx, replace(begun, status_reason=changed.status_reason))
    if _is_pending(changed) and not _is_pending(held):
        using.owners.of(begun).run_restarted(tx, using, begun)
    return begun


def delete(tx: Tx, engine: Engine, known: Deployment) -> None:
    """
    Delete a deployment.

    A resource that waits for the deployment fails, unless the resource itself is being deleted. The stack creates a
    missing deployment again when an update needs it. A trigger counts the deployment as cancelled.
    """
    held = _lock(tx, known)
    if held.resource_id is not None:
        deadlines.cancel_deadline(tx, engine.env.work, held)
        service.withdraw(tx, held)
        resource = resources.find(tx, held.resource_id)
        if resource is not None and _is_pending(held):
            deleting = resource.action is Action.DELETE
            wake_resource(tx, engine, resource.id, None if deleting else f"The deployment ({held.id}) was deleted.")
        return
    engine.env.owners.of(held).removing(tx, engine.env, held)
    standalone.withdraw(tx, engine.env, held)


def _lock(tx: Tx, known: Deployment) -> Deployment:
    held = signals.lock(tx, known)
    if held is None:
        raise EntityNotFound.of("Software deployment", known.id)
    return held


def _retry_in_stack(tx: Tx, engine: Engine, deployment: Deployment) -> Deployment:
    resource, root = _resource_and_root(tx, deployment)
    if root.status is Status.IN_PROGRESS:
        raise ActionInProgress(f"Stack {root.name} already has an action ({root.action}) in progress.")
    if root.action in (Action.DELETE, Action.SUSPEND):
        raise Conflict(f"Stack {root.name} is in {root.action}_{root.status}: {root.action.lower()} it again.")
    if resource.status is not Status.FAILED or resource.action not in (Action.CREATE, Action.UPDATE, Action.ADOPT):
        raise Conflict(
            f"The resource {resource.name} is {resource.action}_{resource.status}: update stack {root.name} instead."
        )
    source = stacks.source(tx, root.id)
    resolved = prepare_again(
        engine, source, Identity(root.id, root.name, root.project_id), source.files, engine.budget(tx)
    )
    operations.update(tx, engine, root.id, resolved, Options())
    return deployments.get(tx, deployment.id)


def _resource_and_root(tx: Tx, deployment: Deployment) -> tuple[Resource, Stack]:
    """Return the deployment's resource, and the root of its tree of stacks. Raises Conflict."""
    resource = resources.find(tx, deployment.resource_id or "")
    stack = stacks.find(tx, resource.stack_id) if resource else None
    root = stacks.find(tx, stack.root_id) if stack else None
    if resource is None or root is None or not resource.current:
        raise Conflict(f"The resource of the deployment ({deployment.id}) is gone or going: there is nothing to retry.")
    return resource, root
