"""Signals that arrive as objects or as messages: the door for them, in the transaction that stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.deployments import alone
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
    """A resource of a stack, or a deployment that none stands behind."""

    stack: Stack | None = None
    resource: Resource | None = None
    deployment: Deployment | None = None

    @property
    def container(self) -> str:
        """Where the object is that signals it."""
        if self.stack is not None:
            return self.stack.id
        assert self.deployment is not None
        return self.deployment.id


class Arrivals:
    """Objects and queues are named by what they signal; what nobody owns is no signal."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def before_object(self, tx: Tx, account: str, container: str, name: str) -> None:
        """A stack, or a trigger and its deployment, is held before anything else is."""
        found = _target(tx, name, account)
        if found is None or found.container != container:
            return
        if found.deployment is not None:
            signals.hold(tx, found.deployment)
        else:
            stacks.find(tx, container, hold=True)

    def object(self, tx: Tx, account: str, container: str, name: str, data: bytes) -> None:
        """Raises Invalid for what is no signal: who sends it knows, and it is not stored."""
        found = _target(tx, name, account)
        if found is None or found.container != container:
            return
        known = containers.find(tx, account, container)
        if known is not None and known.owner == container:
            self._signal(tx, found, _details(data))

    def message(self, tx: Tx, project_id: str, queue: str, messages: Sequence[Message]) -> None:
        """Before anything is stored or held. Raises Invalid for what is no signal."""
        found = _target(tx, queue, project_id)
        known = queues.find(tx, project_id, queue) if found else None
        if found is None or known is None or known.owner != queue:
            return
        if found.resource is not None and self._engine.type(found.resource.type).signal is None:
            return
        for each in messages:
            self._signal(tx, found, _details(each.body.encode()))

    def lodged(self, tx: Tx, id: str, data: bytes) -> None:
        """What was found in a place elsewhere that was made for that id. Raises Invalid for what is no signal."""
        found = _target(tx, id)
        if found is not None:
            self._signal(tx, found, _details(data))

    def _signal(self, tx: Tx, target: _Target, details: Mapping[str, Any]) -> None:
        if target.deployment is not None:
            signals.signal_by_id(tx, self._engine, target.deployment, details)
        elif target.resource is not None and target.stack is not None:
            signals.signal_resource(tx, self._engine, target.stack, target.resource, details)


def _target(tx: Tx, id: str, project_id: str | None = None) -> _Target | None:
    """None also for another project's."""
    if not is_id(id):
        return None
    resource = resources.find(tx, id)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if stack is not None:
        return _Target(stack, resource) if project_id in (None, stack.project_id) else None
    deployment = alone.waits(tx, id)
    found = deployment is not None and project_id in (None, deployment.project_id)
    return _Target(deployment=deployment) if found else None


def _details(data: bytes) -> dict[str, Any]:
    """JSON, also as a text in JSON, as heat-config-notify posts it; nothing is as good as an empty one."""
    said: Any = data.strip() or b"{}"
    try:
        for _ in range(2):
            said = json.loads(said) if isinstance(said, bytes | str) else said
    except (ValueError, RecursionError):
        raise Invalid("a signal must be a JSON object") from None
    if not isinstance(said, dict):
        raise Invalid("a signal must be a JSON object")
    return said
