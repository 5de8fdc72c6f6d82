"""The unit of work on one stack in one transaction: collects reads and changes, and writes them once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any
from uuid import uuid4

from stoker import hot
from stoker.model.errors import Conflict
from stoker.model.stack import Event, Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources.base import Context, ResourceType
from stoker.stacks.engine import Engine
from stoker.stacks.engine.plan import NewPlan, Plan, StoredPlan
from stoker.store import events, resources, rows, stacks
from stoker.store.tx import Tx

#: Resource type of a stack's own events.
STACK_TYPE = "OS::Heat::Stack"


class StackSession:
    """The view of a stack within one transaction. Lock ``stack`` before any change."""

    def __init__(
        self, tx: Tx, engine: Engine, stack: Stack, *, created: bool = False, facade: Resource | None = None
    ) -> None:
        self.tx = tx
        self._facade = facade
        #: True if this transaction created the stack.
        self.created = created
        self.engine = engine
        self.stack = stack
        #: The stack at the beginning of the session.
        self.before = stack
        #: True if an operation ended in this session.
        self.ended = False
        self.plan: Plan = StoredPlan(tx, stack.id)
        #: Keys of steps that are ready to run.
        self.todo: deque[str] = deque()
        self._saved = stack
        self._by_name: dict[str, Resource | None] = {}
        self._by_id: dict[str, Resource] = {}
        self._all_read = False
        self._new: dict[str, Resource] = {}
        self._changed: dict[str, Resource] = {}
        self._dropped: list[str] = []
        #: Events not yet posted to the stack's sinks.
        self._unposted: list[Event] = []

    @cached_property
    def context(self) -> Context:
        """Return the context that the methods of resource types receive."""
        return Context(
            tx=self.tx,
            env=self.engine.env,
            stack_id=self.stack.id,
            stack_name=self.stack.name,
            project_id=self.stack.project_id,
            user_project_id=self.stack.user_project_id,
            nested=self.engine.nested,
            log_bytes=self.engine.limits.log_bytes,
        )

    @cached_property
    def parameters(self) -> hot.Parameters:
        """Return the stack's bound parameters."""
        return hot.Parameters.from_json(self.stack.parameters)

    @cached_property
    def facade(self) -> Resource | None:
        """The parent's resource that represents this nested stack, as this transaction is about to write it."""
        if self._facade is not None or self.stack.parent_resource_id is None:
            return self._facade
        return resources.find(self.tx, self.stack.parent_resource_id)

    def set(self, **changes: Any) -> None:
        """Change columns of the stack's own row."""
        self.stack = replace(self.stack, **changes)
        if "parameters" in changes:
            self.__dict__.pop("parameters", None)  # the property binds the new parameters at its next use
            stacks.learn_hidden(self.tx, self.stack)

    def type_of(self, resource: Resource) -> ResourceType:
        """Return the type of an existing resource."""
        return self.engine.type(resource.type)

    def resource(self, name: str) -> Resource | None:
        """Return the current incarnation of the resource called ``name``, or None."""
        if name not in self._by_name:
            stored = None if self._all_read else resources.find_by_name(self.tx, self.stack.id, name)
            self._by_name[name] = stored
        return self._by_name[name]

    def requirements(self, definition: hot.Definition) -> dict[str, str | None]:
        """Return the ids of the resources that ``definition`` requires, by name. The clean-up deletes them after it."""
        required = {name: self.resource(name) for name in sorted(definition.requires)}
        return {name: resource.id if resource else None for name, resource in required.items()}

    def resource_by_id(self, id: str) -> Resource | None:
        """Return the resource with the id, current or not, or None."""
        if id not in self._by_id and not self._all_read:
            stored = resources.find(self.tx, id)
            if stored is not None:
                self._remember(stored)
        return self._by_id.get(id)

    def read_all(self, everything: Iterable[Resource]) -> None:
        """Take ``everything`` as all resources of the stack, so that no later lookup reads the database."""
        for resource in everything:
            if resource.id not in self._by_id:
                self._remember(resource)
        self._all_read = True

    def names(self) -> list[str]:
        """Return the names of all current resources. Requires ``read_all``."""
        assert self._all_read
        return [name for name, resource in self._by_name.items() if resource is not None]

    def add(self, resource: Resource) -> None:
        """Add a new resource."""
        self._new[resource.id] = resource
        self._remember(resource)

    def change(self, resource: Resource) -> None:
        """Replace a resource by its changed copy."""
        (self._new if resource.id in self._new else self._changed)[resource.id] = resource
        self._remember(resource)

    def retire(self, resource: Resource) -> None:
        """Free the name of a resource for a replacement. The resource itself stays until the clean-up."""
        self._by_name[resource.name] = None
        self.change(replace(resource, current=False))

    def abandon_resource(self, resource: Resource, reason: str) -> Resource:
        """Fail a resource that is no longer awaited. Return the failed resource."""
        failed = replace(resource, status=Status.FAILED, reason=reason)
        self.change(failed)
        self.event(failed)
        return failed

    def drop(self, resource: Resource) -> None:
        """Remove a resource."""
        self._changed.pop(resource.id, None)
        self._by_id.pop(resource.id, None)
        if self._new.pop(resource.id, None) is None:
            self._dropped.append(resource.id)
        if resource.current:
            self._by_name[resource.name] = None

    def event(self, resource: Resource) -> None:
        """Record an event with the resource's present state."""
        kind, id = resource.declared_type, resource.physical_id
        self._add_event(resource.name, kind, id, resource.action, resource.status, resource.reason)

    def signal_event(self, resource: Resource, words: str) -> None:
        """Record an event for a signal to the resource."""
        kind, id = resource.declared_type, resource.physical_id
        self._add_event(resource.name, kind, id, "SIGNAL", Status.COMPLETE, f"Signal: {words}")

    def stack_event(self) -> None:
        """Record an event with the stack's own state."""
        stack = self.stack
        self._add_event(stack.name, STACK_TYPE, stack.id, stack.action, stack.status, stack.reason)

    def save(self) -> None:
        """Write all changes. May be called repeatedly, where a query needs the changes."""
        self.add_unreached()
        for resource in (*self._new.values(), *self._changed.values()):
            if resource.physical_id and self.engine.type(resource.type).has_live_metadata:
                self.tx.bump_document(resource.physical_id)  # the metadata for the server's agent includes the resource
        resources.delete_all(self.tx, self._dropped)
        resources.add_all(self.tx, list(self._new.values()))
        resources.save_all(self.tx, self._changed.values())
        self._dropped, self._new, self._changed = [], {}, {}
        self.plan.save()
        self._tell_sinks()
        self.save_stack()

    def save_stack(self) -> None:
        """Write the stack's own row, for code that reads the row before the session is saved."""
        if self.stack is not self._saved:
            stacks.save(self.tx, self.stack)
            self._saved = self.stack

    def _remember(self, resource: Resource) -> None:
        self._by_id[resource.id] = resource
        if resource.current:
            self._by_name[resource.name] = resource

    def add_unreached(self) -> None:
        """
        Add rows for resources that the present plan has not started, so that lists include them even after a failure.
        """
        if not isinstance(self.plan, NewPlan):
            return  # resources of a stored plan were added when it was stored
        for name, definition in self.plan.definitions().items():
            if self.resource(name) is None:
                mapped_from = definition.get("mapped_from")
                self.add(
                    Resource(
                        id=str(uuid4()),
                        stack_id=self.stack.id,
                        name=name,
                        type=definition["type"],
                        action=Action.INIT,
                        status=Status.COMPLETE,
                        definition={"mapped_from": mapped_from} if mapped_from else {},
                        requires=dict.fromkeys(sorted(hot.Definition.from_json(definition).requires)),
                        created_at=self.tx.now,
                    )
                )

    def _add_event(self, name: str, kind: str, physical_id: str | None, action: str, status: str, reason: str) -> None:
        new = Event(
            id=str(uuid4()),
            stack_id=self.stack.id,
            resource_name=name,
            resource_type=kind,
            physical_id=physical_id,
            action=str(action),
            status=str(status),
            reason=self.tx.secrets.redact_text(reason),
            at=self.tx.now,
        )
        events.add(self.tx, new)
        if self.stack.event_sinks:
            self._unposted.append(new)

    def _tell_sinks(self) -> None:
        payload, self._unposted = [_format_event(event) for event in self._unposted], []
        messaging = self.engine.env.platform.messaging
        if not payload or messaging is None:
            return
        for sink in self.stack.event_sinks:
            with suppress(Conflict):  # Audited. An event must not enter a server's queue, and the operation continues.
                messaging.post(self.tx, self.stack.project_id, sink["target"], payload, sink["ttl"])


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
