"""Signals that arrive as objects or messages, applied in the transaction that stores the object or message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.deployments import standalone, write_audit
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid
from stoker.model.ids import is_id
from stoker.model.messaging import Message
from stoker.model.stack import Resource, Stack
from stoker.stacks import signals
from stoker.stacks.engine import Engine
from stoker.store import containers, queues, resources, stacks
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a signal: a resource of a stack, or a deployment without a resource."""

    stack: Stack | None = None
    resource: Resource | None = None
    deployment: Deployment | None = None

    @property
    def container(self) -> str:
        """Name of the container for the object that signals the target."""
        if self.stack is not None:
            return self.stack.id
        assert self.deployment is not None
        return self.deployment.id

    def audit(self, tx: Tx, channel: str) -> None:
        """Record the signal in the audit log."""
        if self.deployment is not None:
            write_audit.record_signal(
                tx, self.deployment.project_id, "a deployment", channel, deployment_id=self.deployment.id
            )
        elif self.stack is not None and self.resource is not None:
            write_audit.record_signal(tx, self.stack.project_id, self.resource.name, channel, stack_id=self.stack.id)


class InboundSignals:
    """
    Applies objects, messages and remote results as signals.

    The name of an object or queue is the id of its target. Containers and queues without an owner carry no signals.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def before_object(self, tx: Tx, account: str, container: str, name: str) -> None:
        """Lock the stack, or trigger and deployment, before the container: the lock order requires it."""
        found = _target(tx, name, account)
        if found is None or found.container != container:
            return
        if found.deployment is not None:
            signals.lock(tx, found.deployment)
        else:
            stacks.find(tx, container, for_update=True)

    def object(self, tx: Tx, account: str, container: str, name: str, data: bytes) -> None:
        """Apply an object as a signal. Raises Invalid for an unreadable signal, so that the object is not stored."""
        found = _target(tx, name, account)
        if found is None or found.container != container:
            return
        known = containers.find(tx, account, container)
        if known is not None and known.owner == container:
            self._signal(tx, found, _details(data), "object")

    def message(self, tx: Tx, project_id: str, queue: str, messages: Sequence[Message]) -> None:
        """
        Apply messages as signals, before they are stored or the queue is locked. Raises Invalid for an unreadable
        signal.
        """
        found = _target(tx, queue, project_id)
        known = queues.find(tx, project_id, queue) if found else None
        if found is None or known is None or known.owner != queue:
            return
        if found.resource is not None and self._engine.type(found.resource.type).signal is None:
            return
        for each in messages:
            self._signal(tx, found, _details(each.body.encode()), "queue")

    def remote_result(self, tx: Tx, id: str, data: bytes) -> None:
        """
        Apply a result from an object or queue of an external service that was created for ``id``.

        Raises Invalid for an unreadable signal.
        """
        found = _target(tx, id)
        if found is not None:
            self._signal(tx, found, _details(data), "a service elsewhere")

    def _signal(self, tx: Tx, target: _Target, details: Mapping[str, Any], channel: str) -> None:
        """
        Apply a signal and record it in the audit log.

        Only logins and URLs that Stoker issued can write to the object or queue.
        """
        if target.deployment is not None:
            signals.signal_by_id(tx, self._engine, target.deployment, details)
        elif target.resource is not None and target.stack is not None:
            signals.signal_resource(tx, self._engine, target.stack, target.resource, details)
        target.audit(tx, channel)


def _target(tx: Tx, id: str, project_id: str | None = None) -> _Target | None:
    """Return the target with the id, or None, also if it belongs to another project."""
    if not is_id(id):
        return None
    resource = resources.find(tx, id)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if stack is not None:
        return _Target(stack, resource) if project_id in (None, stack.project_id) else None
    deployment = standalone.is_pending(tx, id)
    found = deployment is not None and project_id in (None, deployment.project_id)
    return _Target(deployment=deployment) if found else None


def _details(data: bytes) -> dict[str, Any]:
    """Decode JSON, or JSON in a JSON string, as heat-config-notify posts it. No data counts as an empty map."""
    said: Any = data.strip() or b"{}"
    try:
        for _ in range(2):
            said = json.loads(said) if isinstance(said, bytes | str) else said
    except (ValueError, RecursionError):
        raise Invalid("a signal must be a JSON object") from None
    if not isinstance(said, dict):
        raise Invalid("a signal must be a JSON object")
    return said
