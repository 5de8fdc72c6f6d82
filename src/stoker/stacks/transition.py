"""One transaction's view of a stack: what it read, what it changed. Written once, at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any
from uuid import uuid4

from stoker import hot
from stoker.model.stack import Event, Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources.base import Context, ResourceType
from stoker.stacks import hiding
from stoker.stacks.engine import Engine
from stoker.stacks.plan import NewPlan, Plan, StoredPlan
from stoker.store import events, resources, rows, stacks
from stoker.store.tx import Tx

#: The type under which a stack's own events are listed.
STACK_TYPE = "OS::Heat::Stack"


class Transition:
    """``stack`` must be held by this transaction when anything is going to be changed."""

    def __init__(self, tx: Tx, engine: Engine, stack: Stack, *, created: bool = False) -> None:
        self.tx = tx
        #: The stack came into being in this transaction.
        self.created = created
        self.engine = engine
        self.stack = stack
        #: As it was when this transaction began.
        self.before = stack
        #: An operation came to its end.
        self.ended = False
        self.plan: Plan = StoredPlan(tx, stack.id)
        #: Keys of steps that wait for nothing and are to be run.
        self.todo: deque[str] = deque()
        self._saved = stack
        self._by_name: dict[str, Resource | None] = {}
        self._by_id: dict[str, Resource] = {}
        self._all_read = False
        self._new: dict[str, Resource] = {}
        self._changed: dict[str, Resource] = {}
        self._dropped: list[str] = []
        #: Events that the stack's sinks have yet to hear of.
        self._untold: list[Event] = []

    @cached_property
    def context(self) -> Context:
        return Context(
            tx=self.tx,
            services=self.engine.services,
            stack_id=self.stack.id,
            stack_name=self.stack.name,
            project_id=self.stack.project_id,
            user_project_id=self.stack.user_project_id,
            nested=self.engine.nested,
            hidden=lambda: self._hidden,
            log_bytes=self.engine.limits.log_bytes,
        )

    @cached_property
    def _hidden(self) -> tuple[str, ...]:
        return hiding.secrets(self.tx, self.stack)

    @cached_property
    def parameters(self) -> hot.Parameters:
        return hot.Parameters.from_json(self.stack.parameters)

    def set(self, **changes: Any) -> None:
        """Change the stack's own columns."""
        if "parameters" in changes:
            for name in ("parameters", "_hidden"):
                self.__dict__.pop(name, None)  # bound anew when next asked for
        self.stack = replace(self.stack, **changes)

    def type_of(self, resource: Resource) -> ResourceType:
        return self.engine.type(resource.type)

    def resource(self, name: str) -> Resource | None:
        """The current incarnation of that name."""
        if name not in self._by_name:
            found = None if self._all_read else resources.named(self.tx, self.stack.id, name)
            self._by_name[name] = found
        return self._by_name[name]

    def requirements(self, definition: hot.Definition) -> dict[str, str | None]:
        """What a resource that is about to be brought to ``definition`` builds on, to be cleaned up after it."""
        found = {name: self.resource(name) for name in sorted(definition.requires)}
        return {name: each.id if each else None for name, each in found.items()}

    def resource_by_id(self, id: str) -> Resource | None:
        if id not in self._by_id and not self._all_read:
            found = resources.find(self.tx, id)
            if found is not None:
                self._remember(found)
        return self._by_id.get(id)

    def read_all(self, found: Iterable[Resource]) -> None:
        """These are all there are: nothing needs to be read again."""
        for each in found:
            if each.id not in self._by_id:
                self._remember(each)
        self._all_read = True

    def names(self) -> list[str]:
        """Of all there are now. Only where everything was read."""
        assert self._all_read
        return [name for name, each in self._by_name.items() if each is not None]

    def add(self, resource: Resource) -> None:
        self._new[resource.id] = resource
        self._remember(resource)

    def change(self, resource: Resource) -> None:
        (self._new if resource.id in self._new else self._changed)[resource.id] = resource
        self._remember(resource)

    def retire(self, resource: Resource) -> None:
        """Its place is free; it stays until the clean-up."""
        self._by_name[resource.name] = None
        self.change(replace(resource, current=False))

    def give_up(self, resource: Resource, reason: str) -> Resource:
        """Nobody waits for it any more: it has failed."""
        failed = replace(resource, status=Status.FAILED, reason=reason)
        self.change(failed)
        self.event(failed)
        return failed

    def drop(self, resource: Resource) -> None:
        self._changed.pop(resource.id, None)
        self._by_id.pop(resource.id, None)
        if self._new.pop(resource.id, None) is None:
            self._dropped.append(resource.id)
        if resource.current:
            self._by_name[resource.name] = None

    def event(self, resource: Resource) -> None:
        """Record the resource's present state."""
        self._add_event(
            resource.name, resource.type, resource.physical_id, resource.action, resource.status, resource.reason
        )

    def signal_event(self, resource: Resource, words: str) -> None:
        self._add_event(
            resource.name, resource.type, resource.physical_id, "SIGNAL", Status.COMPLETE, f"Signal: {words}"
        )

    def stack_event(self) -> None:
        stack = self.stack
        self._add_event(stack.name, STACK_TYPE, stack.id, stack.action, stack.status, stack.reason)

    def save(self) -> None:
        """May be called on the way, where the database itself has to know."""
        if isinstance(self.plan, NewPlan):
            self._add_unreached(self.plan)
        for each in (*self._new.values(), *self._changed.values()):
            if each.physical_id and self.engine.type(each.type).has_live_metadata:
                self.tx.touch(each.physical_id)  # its agent is told of the resource, too
        resources.delete_all(self.tx, self._dropped)
        resources.add_all(self.tx, list(self._new.values()))
        resources.save_all(self.tx, self._changed.values())
        self._dropped, self._new, self._changed = [], {}, {}
        self.plan.save()
        self._tell_sinks()
        self.save_stack()

    def save_stack(self) -> None:
        """Its own row, where others look at that before all is done."""
        if self.stack is not self._saved:
            stacks.save(self.tx, self.stack)
            self._saved = self.stack

    def _remember(self, resource: Resource) -> None:
        self._by_id[resource.id] = resource
        if resource.current:
            self._by_name[resource.name] = resource

    def _add_unreached(self, plan: NewPlan) -> None:
        """Whoever lists the stack sees also what has not begun."""
        for name, definition in plan.definitions().items():
            if self.resource(name) is None:
                self.add(
                    Resource(
                        id=str(uuid4()),
                        stack_id=self.stack.id,
                        name=name,
                        type=definition["type"],
                        action=Action.INIT,
                        status=Status.COMPLETE,
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
            reason=reason,
            at=self.tx.now,
        )
        events.add(self.tx, new)
        if self.stack.event_sinks:
            self._untold.append(new)

    def _tell_sinks(self) -> None:
        told, self._untold = [_told(each) for each in self._untold], []
        messaging = self.engine.services.site.messaging
        if not told or messaging is None:
            return
        for sink in self.stack.event_sinks:
            messaging.post(self.tx, self.stack.project_id, sink["target"], told, sink["ttl"])


def _told(event: Event) -> dict[str, Any]:
    """As Heat tells it."""
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
