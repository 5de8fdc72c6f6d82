"""Entry point of all signals: every channel calls these functions, each within one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments import cancellation, deadlines, log_storage, runs, service
from stoker.deployments.standalone import RUN
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, NotSupported
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks.engine import Engine
from stoker.stacks.engine.advance import clear_hook, wake
from stoker.stacks.engine.commit import commit, wake_resource
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import no_resource
from stoker.store import deployments, resources, stacks
from stoker.store import runs as stored_runs
from stoker.store import triggers as stored_triggers
from stoker.store.tx import Tx


def signal_run(tx: Tx, engine: Engine, *, server_id: str, config_id: str, values: Mapping[str, Any]) -> str:
    """
    Apply an agent's result of one run. Return the deployment's status.

    Raises EntityNotFound if the server has no such run, or if the run was withdrawn.
    """
    known = deployments.of_run(tx, server_id, config_id)
    deployment = lock(tx, known) if known else None
    if deployment is None or deployment.config_id != config_id:
        raise EntityNotFound.of("Run", config_id)
    return signal_deployment(tx, engine, deployment, values).status or ""


def signal_deployment(tx: Tx, engine: Engine, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """Apply a signal to a locked deployment. Return the deployment. Late and repeated signals change nothing."""
    if deployment.status != Status.IN_PROGRESS and deployment.cancelling and not runs.is_progress(values):
        log_storage.store_report(tx, deployment, values, engine.limits.log_bytes)
        return cancellation.record_stopped(tx, deployment, values)
    settled = service.apply_signal(tx, deployment, values, engine.limits.log_bytes)
    if settled is not deployment:
        report(tx, engine, settled, before=deployment)
    return settled


def signal_by_id(
    tx: Tx, engine: Engine, known: Deployment, details: Mapping[str, Any], *, run: str | None = None
) -> Deployment:
    """
    Apply a signal to a deployment, with or without a resource.

    A signal that names an earlier run changes nothing: ``deploy_config_id`` in ``details``, or ``run``, its number.
    """
    deployment = lock(tx, known)
    if deployment is None:
        raise EntityNotFound.of("Software deployment", known.id)
    if details.get(RUN, deployment.config_id) != deployment.config_id or not _is_current(tx, deployment, run):
        return deployment
    resource = resources.find(tx, deployment.resource_id) if deployment.resource_id else None
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if resource is None or stack is None:
        said = {name: value for name, value in details.items() if name != RUN}
        return signal_deployment(tx, engine, deployment, said)
    signal_resource(tx, engine, stack, resource, details)
    return deployments.get(tx, deployment.id)


def _is_current(tx: Tx, deployment: Deployment, run: str | None) -> bool:
    if run is None:
        return True
    current = stored_runs.find(tx, deployment.id, deployment.config_id)
    return current is not None and run == str(current.number)


def signal_resource(tx: Tx, engine: Engine, stack: Stack, target: Resource, details: Mapping[str, Any]) -> None:
    """
    Apply a signal to a resource, as Heat's resource signal does.

    ``target`` may be a replaced incarnation of the resource whose last run is in progress. Raises EntityNotFound,
    NotSupported.
    """
    held = stacks.get(tx, stack.id, for_update=True)
    resource = resources.find(tx, target.id)
    if resource is None or resource.action is Action.INIT:
        raise no_resource(target.name, held)
    kind = engine.type(resource.type)
    if kind.signal is None:
        raise NotSupported(f"Signals to {resource.type} resources are not supported.")
    session = StackSession(tx, engine, held)
    signalled = kind.signal(session.context, resource, details)
    if signalled.resource is not None:
        session.change(signalled.resource)
    session.signal_event(resource, signalled.words)
    session.save()  # types of waiting resources read the database
    for id in kind.waiters(session.context, resource):
        waiting = session.resource_by_id(id)
        if waiting is not None:
            wake(session, waiting)
    commit(session)


def find_target(tx: Tx, stack: Stack, name: str, only: str | None = None) -> Resource | None:
    """
    Return the resource that a signal by name refers to.

    This is the current incarnation, or one being deleted if there is no current one. A user with access to one resource
    only (``only``, its id) always refers to that resource.
    """
    if only is not None:
        found = resources.find(tx, only)
        return found if found is not None and (found.stack_id, found.name) == (stack.id, name) else None
    current = resources.find_by_name(tx, stack.id, name)
    if current is not None:
        return current
    return next((each for each in resources.in_progress(tx, stack.id) if each.name == name), None)


def unset_hook(tx: Tx, engine: Engine, stack: Stack, name: str, hook: str) -> None:
    """Clear a breakpoint of a resource and continue its step. Raises EntityNotFound, InvalidBreakPointHook."""
    held = stacks.get(tx, stack.id, for_update=True)
    resource = _find_deleted(tx, held, name) or resources.find_by_name(tx, held.id, name)
    if resource is None:
        raise no_resource(name, held)
    session = StackSession(tx, engine, held)
    clear_hook(session, resource, hook)
    commit(session)


def _find_deleted(tx: Tx, stack: Stack, name: str) -> Resource | None:
    """Return a resource at a breakpoint. Resources of a stack being deleted are no longer current."""
    found = [each for each in resources.of_stack(tx, stack.id) if each.name == name and each.hook]
    return found[0] if found else None


def report(tx: Tx, engine: Engine, deployment: Deployment, *, before: Deployment | None = None) -> None:
    """Notify the resource or trigger of a locked deployment that the deployment has ended, for whatever reason."""
    if not deployment.has_ended:
        return
    deadlines.cancel_deadline(tx, engine.env.work, before or deployment)
    if deployment.resource_id is not None:
        wake_resource(tx, engine, deployment.resource_id)
    else:
        was_cancelling = before is not None and before.cancelling
        engine.env.owners.of(deployment).run_ended(tx, engine.env, deployment, cancelled=was_cancelling)


def lock(tx: Tx, deployment: Deployment) -> Deployment | None:
    """Lock stack, trigger and deployment, in this order. Return the deployment, or None if it was deleted."""
    if deployment.stack_id is not None:
        stacks.find(tx, deployment.stack_id, for_update=True)
    if deployment.trigger_id is not None:
        stored_triggers.find(tx, deployment.trigger_id, for_update=True)
    return deployments.find(tx, deployment.id, for_update=True)
