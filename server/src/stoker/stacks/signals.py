"""
Entry point of all signals: every channel calls ``deliver``, within one transaction.

``InboundSignals`` applies objects and messages in the transaction that stores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.deployments import owners, run_end
from stoker.deployments.runs import RUN, SUPERSEDED, log_rejection
from stoker.json_values import decode
from stoker.model.audit import Decision, Outcome
from stoker.model.deployment import Deployment, Owner
from stoker.model.embedded import Message
from stoker.model.errors import Invalid, NotSupported
from stoker.model.ids import is_id, split_remote_name
from stoker.model.stack import RUN_COUNT, Action, Resource, Stack
from stoker.objects import operations
from stoker.policy import authorizer
from stoker.resources.base import TakesSignals
from stoker.stacks.engine import Engine
from stoker.stacks.engine.progress import clear_hook, commit, lock_resource, lock_stack
from stoker.stacks.operations import no_resource
from stoker.store import deployments, objects, queues, resources, stacks
from stoker.store.tx import Tx


def deliver(
    tx: Tx,
    engine: Engine,
    target: Resource | Deployment,
    payload: Mapping[str, Any],
    *,
    number: str | None = None,
) -> str | None:
    """
    Apply a signal to a resource, as Heat's resource signal does, or to a deployment.

    Late and repeated signals change nothing, as do signals that name an earlier run: ``deploy_config_id`` in
    ``payload``, or ``number``, the run's number. They leave the log event ``signal.rejected``. A resource may be a
    replaced incarnation whose last run is in progress.

    Returns the status of the deployment, None for a resource. Raises EntityNotFound, NotSupported.
    """
    tx.is_signal = True
    if isinstance(target, Resource):
        _signal_resource(tx, engine, target, payload, number)
        return None
    deployment = owners.lock(tx, target)
    if payload.get(RUN, deployment.config_id) != deployment.config_id or not is_current(deployment, number):
        reject(tx, deployment, number or payload.get(RUN))
        return deployment.status
    resource = resources.find(tx, deployment.resource_id) if deployment.resource_id else None
    if resource is not None:
        _signal_resource(tx, engine, resource, payload)
        return deployments.get(tx, deployment.id).status
    return run_end.signal(tx, engine.env, deployment, payload, engine.limits.log_bytes).status


def is_current(target: Resource | Deployment, number: str | None) -> bool:
    """Return whether a signal to the locked target is one of its current run. ``number`` is None if no run is named."""
    if number is None:
        return True
    if isinstance(target, Resource):
        return number == str(target.data.get(RUN_COUNT))
    return number == str(target.run_number)


def reject(tx: Tx, target: Resource | Deployment, run: str | None) -> None:
    """Log a signal that names another run of the target than the current one."""
    log_rejection(tx, target.physical_id if isinstance(target, Resource) else target.id, run, SUPERSEDED)


def _signal_resource(
    tx: Tx, engine: Engine, target: Resource, payload: Mapping[str, Any], number: str | None = None
) -> None:
    locked = lock_resource(tx, engine, target.id, target.stack_id)
    if locked is None or locked[1].action is Action.INIT:
        raise no_resource(target.name, stacks.get(tx, target.stack_id))
    session, resource = locked
    resource_type = engine.type(resource.type)
    if not isinstance(resource_type, TakesSignals):
        raise NotSupported(f"Signals to {resource.type} resources are not supported.")
    if not is_current(resource, number):
        reject(tx, resource, number)
        return
    signalled = resource_type.signal(session.context, resource, payload)
    if signalled.resource is not None:
        session.resources.change(signalled.resource)
    session.record(resource, signal=signalled.words)
    for id in resource_type.waiters(session.context, resource):
        tx.wake(Owner.resource(id))
    commit(session)


def find_target(tx: Tx, stack: Stack, name: str, only: str | None = None) -> Resource | None:
    """
    Return the resource that a signal by name refers to: the current incarnation, else one being deleted. ``only``: the
    id of the only resource that the caller may signal.
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
    session = lock_stack(tx, engine, stack.id)
    # Resources of a stack being deleted are no longer current.
    paused = (resource for resource in resources.of_stack(tx, stack.id) if resource.name == name and resource.hook)
    resource = next(paused, None) or session.resources.find(name)
    if resource is None:
        raise no_resource(name, session.stack)
    clear_hook(session, resource, hook)
    commit(session)


class InboundSignals:
    """
    Applies objects, messages and remote results as signals. Their names contain the id of the target and the number of
    the run (``model.ids.remote_name``). Containers and queues without an owner carry no signals; a late result of an
    earlier run is accepted and dropped.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def before_object(self, tx: Tx, account: str, container: str, name: str) -> None:
        """Lock the stack, or trigger and deployment, before the container: the lock order requires it."""
        target, _ = _find_target(tx, name, account)
        if target is None or _container(target) != container:
            return
        if isinstance(target, Deployment):
            owners.lock(tx, target)
        else:
            stacks.find(tx, container, for_update=True)

    def object(self, tx: Tx, account: str, container: str, name: str, data: bytes) -> None:
        """Apply an object as a signal. Raises Invalid for an unreadable signal, so that the object is not stored."""
        target, number = _find_target(tx, name, account)
        if target is None or _container(target) != container:
            return
        row = objects.find_container(tx, account, container)
        if row is None or row.owner != container:
            return
        if is_current(target, number):
            self._signal(tx, target, _decode(data), "object", account, number)
        else:
            reject(tx, target, number)
            operations.delete(tx, account, container, name, as_owner=True)

    def message(self, tx: Tx, project_id: str, queue: str, messages: Sequence[Message]) -> bool:
        """Apply messages as signals before the queue is locked. Return whether they are stored. Raises Invalid."""
        target, number = _find_target(tx, queue, project_id)
        if target is None:
            return True
        row = queues.find(tx, project_id, queue)
        if row is None and number is not None:
            reject(tx, target, number)
            return False
        if row is None or row.owner != target.id:
            return True
        if isinstance(target, Deployment) or isinstance(self._engine.type(target.type), TakesSignals):
            for message in messages:
                self._signal(tx, target, _decode(message.body.encode()), "queue", project_id, number)
        return True

    def remote_result(self, tx: Tx, name: str, data: bytes) -> None:
        """Apply a result from an object or queue of an external service. Raises Invalid for an unreadable signal."""
        target, number = _find_target(tx, name)
        if target is not None:
            owner = target if isinstance(target, Deployment) else stacks.get(tx, target.stack_id)
            self._signal(tx, target, _decode(data), "a service elsewhere", owner.project_id, number)

    def _signal(
        self,
        tx: Tx,
        target: Resource | Deployment,
        payload: Mapping[str, Any],
        channel: str,
        project_id: str,
        number: str | None,
    ) -> None:
        """Apply a signal and audit it: only logins and URLs that Stoker issued can write it."""
        deliver(tx, self._engine, target, payload, number=number)
        if isinstance(target, Resource):
            name, subject = target.name, {"stack_id": target.stack_id}
        else:
            name, subject = "a deployment", {"deployment_id": target.id}
        signalled = Decision(
            project_id=project_id,
            actor=f"the agent of {name}",
            action=f"signal by {channel}",
            outcome=Outcome.ALLOWED,
            reason="Written with a login or a pre-signed URL that Stoker made for it.",
            **subject,
        )
        authorizer.record(tx, signalled)


def _find_target(tx: Tx, name: str, project_id: str | None = None) -> tuple[Resource | Deployment | None, str | None]:
    """
    Return the resource, or the deployment without a resource, that the name of an object or queue contains, and the
    number of its run. None: there is none in the project.
    """
    id, number = split_remote_name(name)
    return (_find_by_id(tx, id, project_id) if is_id(id) else None), number


def _find_by_id(tx: Tx, id: str, project_id: str | None) -> Resource | Deployment | None:
    resource = resources.find(tx, id)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if stack is not None:
        return resource if project_id in (None, stack.project_id) else None
    deployment = deployments.find(tx, id)
    if deployment is None or deployment.resource_id is not None:
        return None
    return deployment if project_id in (None, deployment.project_id) else None


def _container(target: Resource | Deployment) -> str:
    return target.id if isinstance(target, Deployment) else target.stack_id


def _decode(data: bytes) -> dict[str, Any]:
    """Decode JSON, or JSON in a JSON string, as heat-config-notify posts it. No data counts as an empty map."""
    payload = decode(data.strip() or b"{}", "a signal")
    if isinstance(payload, str):
        payload = decode(payload.encode(), "a signal")
    if not isinstance(payload, dict):
        raise Invalid("a signal must be a JSON object")
    return payload
