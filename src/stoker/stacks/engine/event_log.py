"""The events of a stack, as its resources and operations record them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from stoker.model.errors import Conflict
from stoker.model.stack import Event, Resource, Stack
from stoker.model.status import Status
from stoker.stacks.engine import Engine
from stoker.store import events, rows
from stoker.store.tx import Tx

#: Resource type of a stack's own events.
STACK_TYPE = "OS::Heat::Stack"


class EventLog:
    """Records events, and posts them to the stack's sinks."""

    def __init__(self, tx: Tx, engine: Engine) -> None:
        self._tx = tx
        self._engine = engine
        #: Events not yet posted to the stack's sinks.
        self._unposted: list[Event] = []

    def record(self, stack: Stack, resource: Resource) -> None:
        """Record an event with the resource's present state."""
        kind, id = resource.declared_type, resource.physical_id
        self._add(stack, resource.name, kind, id, resource.action, resource.status, resource.reason)

    def record_signal(self, stack: Stack, resource: Resource, words: str) -> None:
        """Record an event for a signal to the resource."""
        kind, id = resource.declared_type, resource.physical_id
        self._add(stack, resource.name, kind, id, "SIGNAL", Status.COMPLETE, f"Signal: {words}")

    def record_stack(self, stack: Stack) -> None:
        """Record an event with the stack's own state."""
        self._add(stack, stack.name, STACK_TYPE, stack.id, stack.action, stack.status, stack.reason)

    def post(self, stack: Stack) -> None:
        """Post the events since the last call to the stack's sinks."""
        payload, self._unposted = [_format_event(event) for event in self._unposted], []
        messaging = self._engine.env.platform.messaging
        if not payload or messaging is None:
            return
        for sink in stack.event_sinks:
            with suppress(Conflict):  # Audited. An event must not enter a server's queue, and the operation continues.
                messaging.post(self._tx, stack.project_id, sink["target"], payload, sink["ttl"])

    def _add(
        self, stack: Stack, name: str, kind: str, physical_id: str | None, action: str, status: str, reason: str
    ) -> None:
        event = Event(
            id=str(uuid4()),
            stack_id=stack.id,
            resource_name=name,
            resource_type=kind,
            physical_id=physical_id,
            action=str(action),
            status=str(status),
            reason=self._tx.secrets.redact_text(reason),
            at=self._tx.now,
        )
        events.add(self._tx, event)
        if stack.event_sinks:
            self._unposted.append(event)


def _format_event(event: Event) -> dict[str, Any]:
    """Return an event in Heat's form for sinks."""
    return {
        "timestamp": rows.heat_time(event.at),
        "version": "0.1",
        "type": "os.heat.event",
        "id": event.id,
        "payload": {
            "resource_name": event.resource_name,
            "physical_resource_id": event.physical_id,
            "stack_id": event.stack_id,
            "resource_action": event.action,
            "resource_status": event.status,
            "resource_status_reason": event.reason,
            "resource_type": event.resource_type,
            "resource_properties": dict(event.properties),
            "version": "0.1",
        },
    }
