"""Signals that arrive as objects or messages, applied in the transaction that stores the object or message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stoker.deployments import owners, write_audit
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid
from stoker.model.ids import is_id
from stoker.model.messaging import Message
from stoker.model.stack import Resource
from stoker.stacks import signals
from stoker.stacks.engine import Engine
from stoker.store import containers, deployments, queues, resources, stacks
from stoker.store.tx import Tx


class InboundSignals:
    """
    Applies objects, messages and remote results as signals.

    The name of an object or queue is the id of its target. Containers and queues without an owner carry no signals.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def before_object(self, tx: Tx, account: str, container: str, name: str) -> None:
        """Lock the stack, or trigger and deployment, before the container: the lock order requires it."""
        target = _find_target(tx, name, account)
        if target is None or _container(target) != container:
            return
        if isinstance(target, Deployment):
            owners.lock(tx, target)
        else:
            stacks.find(tx, container, for_update=True)

    def object(self, tx: Tx, account: str, container: str, name: str, data: bytes) -> None:
        """Apply an object as a signal. Raises Invalid for an unreadable signal, so that the object is not stored."""
        target = _find_target(tx, name, account)
        if target is None or _container(target) != container:
            return
        row = containers.find(tx, account, container)
        if row is not None and row.owner == container:
            self._signal(tx, target, _decode(data), "object", account)

    def message(self, tx: Tx, project_id: str, queue: str, messages: Sequence[Message]) -> None:
        """
        Apply messages as signals, before they are stored or the queue is locked. Raises Invalid for an unreadable
        signal.
        """
        target = _find_target(tx, queue, project_id)
        row = queues.find(tx, project_id, queue) if target else None
        if target is None or row is None or row.owner != queue:
            return
        if isinstance(target, Resource) and self._engine.type(target.type).signal is None:
            return
        for message in messages:
            self._signal(tx, target, _decode(message.body.encode()), "queue", project_id)

    def remote_result(self, tx: Tx, id: str, data: bytes) -> None:
        """
        Apply a result from an object or queue of an external service that was created for ``id``.

        Raises Invalid for an unreadable signal.
        """
        target = _find_target(tx, id)
        if target is not None:
            owner = target if isinstance(target, Deployment) else stacks.get(tx, target.stack_id)
            self._signal(tx, target, _decode(data), "a service elsewhere", owner.project_id)

    def _signal(
        self, tx: Tx, target: Resource | Deployment, payload: Mapping[str, Any], channel: str, project_id: str
    ) -> None:
        """
        Apply a signal and record it in the audit log.

        Only logins and URLs that Stoker issued can write to the object or queue.
        """
        signals.deliver(tx, self._engine, target, payload)
        if isinstance(target, Deployment):
            write_audit.record_signal(tx, project_id, "a deployment", channel, deployment_id=target.id)
        else:
            write_audit.record_signal(tx, project_id, target.name, channel, stack_id=target.stack_id)


def _find_target(tx: Tx, id: str, project_id: str | None = None) -> Resource | Deployment | None:
    """
    Return the resource, or the deployment without a resource, that the id names. None if there is none in the project.
    """
    if not is_id(id):
        return None
    resource = resources.find(tx, id)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if stack is not None:
        return resource if project_id in (None, stack.project_id) else None
    deployment = deployments.find(tx, id)
    if deployment is None or deployment.resource_id is not None:
        return None
    return deployment if project_id in (None, deployment.project_id) else None


def _container(target: Resource | Deployment) -> str:
    """Return the name of the container for the object that signals the target."""
    return target.id if isinstance(target, Deployment) else target.stack_id


def _decode(data: bytes) -> dict[str, Any]:
    """Decode JSON, or JSON in a JSON string, as heat-config-notify posts it. No data counts as an empty map."""
    payload: Any = data.strip() or b"{}"
    try:
        for _ in range(2):
            payload = json.loads(payload) if isinstance(payload, bytes | str) else payload
    except (ValueError, RecursionError):
        raise Invalid("a signal must be a JSON object") from None
    if not isinstance(payload, dict):
        raise Invalid("a signal must be a JSON object")
    return payload
