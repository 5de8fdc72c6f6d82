"""The door for everything that is reported: whatever the channel, one function and one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments import deadlines, manage, output, runs, stopping, triggers
from stoker.deployments.alone import RUN
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, NotSupported
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks.advance import clear_hook, wake
from stoker.stacks.closing import close, wake_resource
from stoker.stacks.engine import Engine
from stoker.stacks.operations import no_resource
from stoker.stacks.transition import Transition
from stoker.store import deployments, resources, stacks
from stoker.store import runs as stored_runs
from stoker.store import triggers as stored_triggers
from stoker.store.tx import Tx


def signal_run(tx: Tx, engine: Engine, *, server_id: str, config_id: str, values: Mapping[str, Any]) -> str:
    """
    An agent's result of one run; returns the deployment's status.

    Raises EntityNotFound when this server has no such run, also when it was withdrawn meanwhile.
    """
    known = deployments.of_run(tx, server_id, config_id)
    deployment = hold(tx, known) if known else None
    if deployment is None or deployment.config_id != config_id:
        raise EntityNotFound.of("Run", config_id)
    return signal_deployment(tx, engine, deployment, values).status or ""


def signal_deployment(tx: Tx, engine: Engine, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """``deployment`` must be held. Late and repeated signals change nothing."""
    if deployment.status != Status.IN_PROGRESS and deployment.cancelling and not runs.is_progress(values):
        output.log_of_report(tx, deployment, values, engine.limits.log_bytes)
        return stopping.stopped(tx, deployment, values)
    settled = manage.take_signal(tx, deployment, values, engine.limits.log_bytes)
    if settled is not deployment:
        report(tx, engine, settled, before=deployment)
    return settled


def signal_by_id(
    tx: Tx, engine: Engine, known: Deployment, details: Mapping[str, Any], *, run: str | None = None
) -> Deployment:
    """
    A signal to a deployment, whoever stands behind it. What names an earlier run (``deploy_config_id``, or ``run``, its
    number) changes nothing.
    """
    deployment = hold(tx, known)
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
    Heat's resource signal; ``target`` may be an incarnation that is going, and runs its last.

    Raises EntityNotFound, NotSupported.
    """
    held = stacks.get(tx, stack.id, hold=True)
    resource = resources.find(tx, target.id)
    if resource is None or resource.action is Action.INIT:
        raise no_resource(target.name, held)
    kind = engine.type(resource.type)
    if kind.signal is None:
        raise NotSupported(f"Signals to {resource.type} resources are not supported.")
    transition = Transition(tx, engine, held)
    signalled = kind.signal(transition.context, resource, details)
    if signalled.resource is not None:
        transition.change(signalled.resource)
    transition.signal_event(resource, signalled.words)
    transition.save()  # those who wait for it look into the database
    for id in kind.waiters(transition.context, resource):
        waiting = transition.resource_by_id(id)
        if waiting is not None:
            wake(transition, waiting)
    close(transition)


def addressed(tx: Tx, stack: Stack, name: str, only: str | None = None) -> Resource | None:
    """
    Whom a signal by name means: the current incarnation, or one that is going while there is no other. Who stands for
    one resource (``only``, its id) means that one, whichever it is.
    """
    if only is not None:
        found = resources.find(tx, only)
        return found if found is not None and (found.stack_id, found.name) == (stack.id, name) else None
    current = resources.named(tx, stack.id, name)
    if current is not None:
        return current
    return next((each for each in resources.in_progress(tx, stack.id) if each.name == name), None)


def unset_hook(tx: Tx, engine: Engine, stack: Stack, name: str, hook: str) -> None:
    """Raises EntityNotFound, InvalidBreakPointHook."""
    held = stacks.get(tx, stack.id, hold=True)
    resource = _going(tx, held, name) or resources.named(tx, held.id, name)
    if resource is None:
        raise no_resource(name, held)
    transition = Transition(tx, engine, held)
    clear_hook(transition, resource, hook)
    close(transition)


def _going(tx: Tx, stack: Stack, name: str) -> Resource | None:
    """While a stack is deleted its resources are no longer current, and may stand at a breakpoint yet."""
    found = [each for each in resources.of_stack(tx, stack.id) if each.name == name and each.hook]
    return found[0] if found else None


def report(tx: Tx, engine: Engine, deployment: Deployment, *, before: Deployment | None = None) -> None:
    """A deployment has ended, however it came to that: let its resource or its trigger know. It must be held."""
    if deployment.status == Status.IN_PROGRESS:
        return
    deadlines.call_off(tx, engine.services.work, before or deployment)
    if deployment.resource_id is not None:
        wake_resource(tx, engine, deployment.resource_id)
    elif deployment.trigger_id is not None:
        told = before is not None and before.cancelling
        triggers.ended(tx, engine.services, deployment, cancelled=told)


def hold(tx: Tx, deployment: Deployment) -> Deployment | None:
    """Stack first, then trigger, then deployment: everybody locks in this order."""
    if deployment.stack_id is not None:
        stacks.find(tx, deployment.stack_id, hold=True)
    if deployment.trigger_id is not None:
        stored_triggers.find(tx, deployment.trigger_id, hold=True)
    return deployments.find(tx, deployment.id, hold=True)
