"""What users do with one deployment, whoever stands behind it: end its run, run it again, delete it."""

from __future__ import annotations

from stoker.deployments import alone, manage, stopping, triggers
from stoker.model.deployment import Deployment
from stoker.model.errors import ActionInProgress, Conflict, EntityNotFound
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import operations, signals
from stoker.stacks.engine import Engine
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Identity, prepare_again
from stoker.store import deployments, resources, stacks
from stoker.store.tx import Tx


def cancel(tx: Tx, engine: Engine, known: Deployment, by: str, *, force: bool = False) -> Deployment:
    """
    Its agent is told to stop the run, and it ends when the agent has; with ``force`` it has ended now. Raises Conflict
    for one that has ended.
    """
    held = _hold(tx, known)
    if held.status != Status.IN_PROGRESS:
        raise Conflict(f"The deployment ({held.id}) is {held.status or 'not under way'}: there is nothing to cancel.")
    stop = stopping.give_up if force else stopping.cancel
    stopped = stop(tx, held, f"Cancelled by {by}")
    if stopped.status != Status.IN_PROGRESS:
        signals.report(tx, engine, stopped, before=held)
    return stopped


def retry(tx: Tx, engine: Engine, known: Deployment, by: str) -> Deployment:
    """
    Run again what failed. A stack's own is tried again by its stack, which goes on from there: an update with the
    template that it has. Raises Conflict where that cannot be.
    """
    held = _hold(tx, known)
    if held.status != Status.FAILED:
        raise Conflict(f"The deployment ({held.id}) is {held.status or 'not under way'}: only what failed is retried.")
    if held.resource_id is not None:
        return _retry_in_stack(tx, engine, held)
    begun = alone.begin_again(tx, engine.services, held, by)
    if begun.trigger_id is not None:
        triggers.again(tx, engine.services, begun)
    return begun


def delete(tx: Tx, engine: Engine, known: Deployment) -> None:
    """A stack that has lost one makes it anew when it needs it; a trigger counts it as cancelled."""
    held = _hold(tx, known)
    if held.resource_id is not None:
        manage.withdraw(tx, held)
        return
    if held.trigger_id is not None:
        triggers.removed(tx, engine.services, held)
    alone.withdraw(tx, engine.services, held)


def _hold(tx: Tx, known: Deployment) -> Deployment:
    held = signals.hold(tx, known)
    if held is None:
        raise EntityNotFound.of("Software deployment", known.id)
    return held


def _retry_in_stack(tx: Tx, engine: Engine, deployment: Deployment) -> Deployment:
    resource, root = _behind(tx, deployment)
    if root.status is Status.IN_PROGRESS:
        raise ActionInProgress(f"Stack {root.name} already has an action ({root.action}) in progress.")
    if root.action in (Action.DELETE, Action.SUSPEND):
        raise Conflict(f"Stack {root.name} is in {root.action}_{root.status}: {root.action.lower()} it again.")
    if resource.status is not Status.FAILED or resource.action not in (Action.CREATE, Action.UPDATE, Action.ADOPT):
        raise Conflict(
            f"The resource {resource.name} is {resource.action}_{resource.status}: update stack {root.name} instead."
        )
    source = stacks.source(tx, root.id)
    prepared = prepare_again(engine, source, Identity(root.id, root.name, root.project_id), source.files)
    operations.update(tx, engine, root.id, prepared, Options())
    return deployments.get(tx, deployment.id)


def _behind(tx: Tx, deployment: Deployment) -> tuple[Resource, Stack]:
    """Its resource, and the stack at the top of the tree that it is in."""
    resource = resources.find(tx, deployment.resource_id or "")
    stack = stacks.find(tx, resource.stack_id) if resource else None
    root = stacks.find(tx, stack.root_id) if stack else None
    if resource is None or root is None or not resource.current:
        raise Conflict(f"The resource of the deployment ({deployment.id}) is gone or going: there is nothing to retry.")
    return resource, root
