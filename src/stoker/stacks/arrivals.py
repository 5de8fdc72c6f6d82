"""Signals that arrive as objects or as messages: the door for them, in the transaction that stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from stoker.model.errors import Invalid
from stoker.model.messaging import Message
from stoker.model.stack import Resource, Stack
from stoker.stacks import signals
from stoker.stacks.engine import Engine
from stoker.store import containers, queues, resources, stacks
from stoker.store.tx import Tx


class Arrivals:
    """Objects and queues are named by the resource that they signal; what nobody owns is no signal."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def before_object(self, tx: Tx, account: str, container: str, name: str) -> None:
        """A stack is held before anything else is."""
        found = _target(tx, account, name)
        if found is not None and found[1].id == container:
            stacks.find(tx, container, hold=True)

    def object(self, tx: Tx, account: str, container: str, name: str, data: bytes) -> None:
        """Raises Invalid for what is no signal: who sends it knows, and it is not stored."""
        found = _target(tx, account, name)
        if found is None or found[1].id != container:
            return
        known = containers.find(tx, account, container)
        if known is not None and known.owner == container:
            self._signal(tx, found, _details(data))

    def message(self, tx: Tx, project_id: str, queue: str, messages: Sequence[Message]) -> None:
        """Before anything is stored or held. Raises Invalid for what is no signal."""
        found = _target(tx, project_id, queue)
        known = queues.find(tx, project_id, queue) if found else None
        if found is None or known is None or known.owner != queue:
            return
        if self._engine.type(found[0].type).signal is None:
            return
        for each in messages:
            self._signal(tx, found, _details(each.body.encode()))

    def lodged(self, tx: Tx, resource_id: str, data: bytes) -> None:
        """What was found in a place elsewhere that was made for that resource. Raises Invalid for what is no signal."""
        resource = resources.find(tx, resource_id)
        stack = stacks.find(tx, resource.stack_id, hold=True) if resource else None
        if resource is not None and stack is not None:
            self._signal(tx, (resource, stack), _details(data))

    def _signal(self, tx: Tx, target: tuple[Resource, Stack], details: Mapping[str, Any]) -> None:
        resource, stack = target
        signals.signal_resource(tx, self._engine, stack, resource, details)


def _target(tx: Tx, project_id: str, id: str) -> tuple[Resource, Stack] | None:
    if not _is_id(id):
        return None
    resource = resources.find(tx, id)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    return (resource, stack) if resource and stack and stack.project_id == project_id else None


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


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
