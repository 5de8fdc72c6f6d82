"""Entry point of all signals: every channel calls ``deliver``, within one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments import owners, service
from stoker.deployments.signals import RUN
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, NotSupported
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action
from stoker.stacks.engine import Engine
from stoker.stacks.engine.advance import clear_hook, wake
from stoker.stacks.engine.commit import commit
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import no_resource
from stoker.store import deployments, resources, runs, stacks
from stoker.store.tx import Tx


def deliver(
    tx: Tx,
    engine: Engine,
    target: Resource | Deployment,
    payload: Mapping[str, Any],
    *,
    number: str | None = None,
    has_event: bool = False,
) -> str | None:
    """
    Apply a signal to a resource, as Heat's resource signal does, or to a deployment.

    Late and repeated signals change nothing, as do signals that name an earlier run: ``deploy_config_id`` in
    ``payload``, or ``number``, the run's number. A resource may be a replaced incarnation whose last run is in
    progress. ``has_event``: a signal to a resource's deployment has an event, as a signal to the resource has.

    Returns the status of the deployment, None for a resource. Raises EntityNotFound, NotSupported.
    """
    tx.is_signal = True
    if isinstance(target, Resource):
        _signal_resource(tx, engine, target, payload)
        return None
    deployment = owners.lock(tx, target)
    if payload.get(RUN, deployment.config_id) != deployment.config_id or not _is_current(tx, deployment, number):
        return deployment.status
    resource = resources.find(tx, deployment.resource_id) if has_event and deployment.resource_id else None
    if resource is not None:
        _signal_resource(tx, engine, resource, payload)
        return deployments.get(tx, deployment.id).status
    values = {name: value for name, value in payload.items() if name != RUN}
    return service.signal(tx, engine.env, deployment, values, engine.limits.log_bytes).status


def find_run(tx: Tx, server_id: str, config_id: str) -> Deployment:
    """Return the deployment of a run. Raises EntityNotFound if the server has no such run, or the run was withdrawn."""
    deployment = deployments.of_run(tx, server_id, config_id)
    if deployment is None:
        raise EntityNotFound.of("Run", config_id)
    return deployment


def _is_current(tx: Tx, deployment: Deployment, number: str | None) -> bool:
    if number is None:
        return True
    run = runs.find(tx, deployment.id, deployment.config_id)
    return run is not None and number == str(run.number)


def _signal_resource(tx: Tx, engine: Engine, target: Resource, payload: Mapping[str, Any]) -> None:
    stack = stacks.get(tx, target.stack_id, for_update=True)
    resource = resources.find(tx, target.id)
    if resource is None or resource.action is Action.INIT:
        raise no_resource(target.name, stack)
    resource_type = engine.type(resource.type)
    if resource_type.signal is None:
        raise NotSupported(f"Signals to {resource.type} resources are not supported.")
    session = StackSession(tx, engine, stack)
    signalled = resource_type.signal(session.context, resource, payload)
    if signalled.resource is not None:
        session.resources.change(signalled.resource)
    session.events.record_signal(session.stack, resource, signalled.words)
    session.save()  # types of waiting resources read the database
    for id in resource_type.waiters(session.context, resource):
        waiting = session.resources.find_by_id(id)
        if waiting is not None:
            wake(session, waiting, changed=signalled.deployment)
    commit(session)


def find_target(tx: Tx, stack: Stack, name: str, only: str | None = None) -> Resource | None:
    """
    Return the resource that a signal by name refers to.

    This is the current incarnation, or one being deleted if there is no current one. A user with access to one resource
    only (``only``, its id) always refers to that resource.
    """
    if only is not None:
        resource = resources.find(tx, only)
        is_named = resource is not None and (resource.stack_id, resource.name) == (stack.id, name)
        return resource if is_named else None
    current = resources.find_by_name(tx, stack.id, name)
    if current is not None:
        return current
    in_progress = resources.in_progress(tx, stack.id)
    return next((resource for resource in in_progress if resource.name == name), None)


def unset_hook(tx: Tx, engine: Engine, stack: Stack, name: str, hook: str) -> None:
    """Clear a breakpoint of a resource and continue its step. Raises EntityNotFound, InvalidBreakPointHook."""
    locked = stacks.get(tx, stack.id, for_update=True)
    # Resources of a stack being deleted are no longer current.
    paused = (resource for resource in resources.of_stack(tx, locked.id) if resource.name == name and resource.hook)
    resource = next(paused, None) or resources.find_by_name(tx, locked.id, name)
    if resource is None:
        raise no_resource(name, locked)
    session = StackSession(tx, engine, locked)
    clear_hook(session, resource, hook)
    commit(session)
