"""
The unit of work on one stack in one transaction: its resources, events and plan, read once and written together, and
the values of references to them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker import hot
from stoker.hot import ALL_ATTRIBUTES, select
from stoker.model.errors import InvalidTemplateReference, StackValidationFailed, StokerError
from stoker.model.stack import Action, Event, Phase, Resource, Stack, Status
from stoker.resources.base import Context, NoSuchAttribute, ResourceType
from stoker.stacks.engine import Engine
from stoker.stacks.engine.plan import Plan
from stoker.store import events, resources, rows, stacks
from stoker.store.tx import Tx


def new_resource(
    tx: Tx, stack_id: str, name: str, type: str, data: Mapping[str, Any] | None = None, **more: Any
) -> Resource:
    """Return a new resource whose first action has not started. ``more``: other columns."""
    return Resource(
        id=str(uuid4()),
        stack_id=stack_id,
        name=name,
        type=type,
        action=Action.INIT,
        status=Status.COMPLETE,
        data=data or {},
        created_at=tx.now,
        **more,
    )


class ResourceSet:
    """The resources of a stack, by name (the current ones) and by id, with changes that are not yet written."""

    def __init__(self, tx: Tx, stack_id: str) -> None:
        self._tx = tx
        self._stack_id = stack_id
        self._by_name: dict[str, Resource | None] = {}
        self._by_id: dict[str, Resource] = {}
        #: Ids of resources that are or were no longer current.
        self._retired: dict[str, list[str]] = {}
        self._is_complete = False
        self._changed: dict[str, Resource] = {}
        self._dropped: list[str] = []

    def find(self, name: str) -> Resource | None:
        """Return the current incarnation of the resource called ``name``, or None."""
        if name not in self._by_name:
            stored = None if self._is_complete else resources.find_by_name(self._tx, self._stack_id, name)
            self._by_name[name] = stored
        return self._by_name[name]

    def load(self, names: Iterable[str]) -> None:
        """Read the current incarnations of several resources at once, which ``find`` then returns."""
        unread = [name for name in names if name not in self._by_name]
        if len(unread) > 1 and not self._is_complete:
            self._by_name |= dict.fromkeys(unread)
            for resource in resources.of_names(self._tx, self._stack_id, unread):
                if resource.id not in self._by_id:
                    self._remember(resource)

    def find_by_id(self, id: str) -> Resource | None:
        """Return the resource with the id, current or not, or None."""
        if id not in self._by_id and id not in self._dropped and not self._is_complete:
            stored = resources.find(self._tx, id)
            if stored is not None:
                self._remember(stored)
        return self._by_id.get(id)

    def requirements(self, definition: hot.Definition) -> dict[str, str | None]:
        """Return the ids of the resources that ``definition`` requires, by name. The clean-up deletes them after it."""
        return {name: item.id if (item := self.find(name)) else None for name in sorted(definition.requires)}

    def load_all(self) -> list[Resource]:
        """Read all resources of the stack, and return them, replaced ones included."""
        if not self._is_complete:
            self.preload(resources.of_stack(self._tx, self._stack_id))
        return list(self._by_id.values())

    def preload(self, everything: Iterable[Resource]) -> None:
        """Take ``everything`` as all resources of the stack, so that no later lookup reads the database."""
        for resource in everything:
            if resource.id not in self._by_id:
                self._remember(resource)
        self._is_complete = True

    def names(self) -> list[str]:
        """Return the names of all current resources. Requires ``preload``."""
        assert self._is_complete
        return [name for name, resource in self._by_name.items() if resource is not None]

    def change(self, resource: Resource) -> Resource:
        """Add or replace a resource, and return it. A retired one becomes current if its name is free."""
        self._changed[resource.id] = resource
        self._remember(resource)
        return resource

    def retire(self, resource: Resource) -> None:
        """Free the name of a resource for a replacement. The resource itself stays until the clean-up."""
        self._by_name[resource.name] = None
        self.change(replace(resource, current=False))

    def find_retired(self, name: str) -> list[Resource]:
        """Return the incarnations of the resource called ``name`` that are no longer current, the latest first."""
        if not self._is_complete:
            for resource in resources.retired(self._tx, self._stack_id, name):
                if resource.id not in self._by_id and resource.id not in self._dropped:
                    self._remember(resource)
        incarnations = [self._by_id[id] for id in self._retired.get(name, ()) if id in self._by_id]
        retired = [resource for resource in incarnations if not resource.current]
        return sorted(retired, key=lambda resource: resource.created_at, reverse=True)

    def drop(self, resource: Resource) -> None:
        """Remove a resource."""
        self._changed.pop(resource.id, None)
        self._by_id.pop(resource.id, None)
        self._dropped.append(resource.id)
        if resource.current:
            self._by_name[resource.name] = None

    def save(self) -> Collection[Resource]:
        """Write all changes. Return the resources that were new or changed since the last call."""
        changed = self._changed.values()
        if self._dropped:
            resources.delete_all(self._tx, self._dropped)
        resources.save_all(self._tx, changed)
        self._dropped, self._changed = [], {}
        return changed

    def _remember(self, resource: Resource) -> None:
        self._by_id[resource.id] = resource
        if resource.current:
            self._by_name[resource.name] = resource
        elif resource.id not in self._retired.setdefault(resource.name, []):
            self._retired[resource.name].append(resource.id)


#: Resource type of a stack's own events.
STACK_TYPE = "OS::Heat::Stack"


def _format_event(event: Event) -> dict[str, Any]:
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


class StackSession:
    """
    The view of a stack, which is locked before any change, within one transaction. ``facade``: the resource of the
    parent whose step opened the session of a nested stack, as it is about to be written; that step checks the stack's
    state itself.
    """

    def __init__(
        self, tx: Tx, engine: Engine, stack: Stack, *, created: bool = False, facade: Resource | None = None
    ) -> None:
        self.tx = tx
        self._facade = facade
        #: Whether the session belongs to a step of the parent's stack.
        self.is_within_step = facade is not None
        #: True if this transaction created the stack.
        self.created = created
        self.engine = engine
        self.stack = stack
        #: The stack at the beginning of the session.
        self.before = stack
        #: Keys of paused steps whose gate is open.
        self.open_gates: set[str] = set()
        #: True if an operation ended in this session.
        self.ended = False
        self.plan = Plan(tx, stack.id)
        #: Keys of steps that are ready to run.
        self.todo: deque[str] = deque()
        self._saved = stack
        self.resources = ResourceSet(tx, stack.id)
        #: Events not yet posted to the stack's sinks.
        self._unposted: list[Event] = []

    @cached_property
    def context(self) -> Context:
        """Return the context that the methods of resource types receive."""
        stack = self.stack
        return Context(
            tx=self.tx,
            env=self.engine.env,
            stack_id=stack.id,
            stack_name=stack.name,
            project_id=stack.project_id,
            stack=stack,
            engine=self.engine,
        )

    @cached_property
    def parameters(self) -> hot.Parameters:
        """Return the stack's bound parameters."""
        return hot.Parameters.from_json(self.stack.parameters)

    @cached_property
    def facade(self) -> Resource | None:
        """The parent's resource that represents this nested stack."""
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

    def abandon_resource(self, resource: Resource, reason: str) -> Resource:
        """Fail a resource that is no longer awaited. Return the failed resource."""
        failed = replace(resource, status=Status.FAILED, reason=reason, operation=None)
        self.resources.change(failed)
        self.record(failed)
        return failed

    def wait_for(self, resource: Resource, key: str) -> None:
        """Let the step ``key`` end with the action in progress on the resource, which is written."""
        self.resources.change(replace(resource, operation=self.stack.traversal))
        self.plan.start(key)

    def awaits(self, resource: Resource) -> bool:
        """Return whether a step of the present operation has started and ends with the resource's action."""
        return self.stack.phase is not Phase.IDLE and resource.operation == self.stack.traversal

    def save(self) -> None:
        """Write all changes. May be called repeatedly, where a query needs the changes."""
        self.add_unreached()
        for resource in self.resources.save():
            if resource.physical_id and self.engine.type(resource.type).has_live_metadata:
                self.tx.bump_document(resource.physical_id)  # the metadata for the server's agent includes the resource
        self.plan.save()
        if self._unposted:
            self._post_events()
        if self.stack is not self._saved:
            stacks.save(self.tx, self.stack)
            self._saved = self.stack

    def record(self, resource: Resource | None = None, *, signal: str | None = None, id: str | None = None) -> None:
        """
        Record an event with the present state of a resource, by default of the stack itself. ``signal``: the event is
        of a signal to the resource, in these words; ``id``: the id of the event, which is that of a new operation.
        """
        stack, subject = self.stack, resource or self.stack
        event = Event(
            id=id or str(uuid4()),
            stack_id=stack.id,
            resource_name=subject.name,
            resource_type=STACK_TYPE if resource is None else resource.declared_type,
            physical_id=stack.id if resource is None else resource.physical_id,
            action=subject.action.value if signal is None else "SIGNAL",
            status=subject.status.value if signal is None else Status.COMPLETE.value,
            reason=self.tx.secrets.redact(subject.reason if signal is None else f"Signal: {signal}"),
            at=self.tx.now,
        )
        events.add(self.tx, event)
        if stack.event_sinks:
            self._unposted.append(event)

    def _post_events(self) -> None:
        payload, self._unposted = [_format_event(event) for event in self._unposted], []
        for sink in self.stack.event_sinks:
            self.engine.env.post_events(self.tx, self.stack.project_id, sink["target"], payload, sink["ttl"])

    def add_unreached(self) -> None:
        """Add rows for resources that the plan has not started, so that lists include them after a failure."""
        for name, planned in self.plan.unsaved_definitions().items():
            if self.resources.find(name) is None:
                definition = hot.Definition.from_json(planned)
                self.add_unstarted(definition, dict.fromkeys(sorted(definition.requires)))

    def add_unstarted(
        self, definition: hot.Definition, requires: Mapping[str, str | None], data: Mapping[str, Any] | None = None
    ) -> Resource:
        """Add a resource whose first action has not started. Its definition is that of its step until then."""
        mapped = {"mapped_from": definition.mapped_from} if definition.mapped_from else {}
        return self.resources.change(
            new_resource(
                self.tx, self.stack.id, definition.name, definition.type, data, definition=mapped, requires=requires
            )
        )


def all_attributes(session: StackSession, resource: Resource) -> dict[str, Any]:
    """Return all attributes by name. An unavailable attribute is null."""
    if resource.action in (Action.INIT, Action.DELETE):
        return {}
    kind = session.type_of(resource)
    shown = {}
    for name in kind.attribute_names(session.context, resource):
        try:
            shown[name] = kind.attribute_at(session.context, resource, name, ())
        except (NoSuchAttribute, StokerError):
            shown[name] = None
    return shown


#: Every resource has this attribute: its representation in its own API, null for types without one.
SHOW = "show"


class LiveScope:
    """Evaluates with existing resources. Loads only what functions read. Implements ``hot.Scope``."""

    def __init__(self, session: StackSession) -> None:
        self._session = session
        self.version = session.stack.version
        self.budget = session.engine.budget(session.tx)

    @property
    def names(self) -> Sequence[str]:
        """The names of the current resources, which the session has read."""
        return self._session.resources.names()

    def has(self, name: str) -> bool:
        """Return whether the stack has a resource of this name."""
        return self._session.resources.find(name) is not None

    def parameter(self, name: str) -> Any:
        """Return the value of a parameter."""
        return self._session.parameters[name]

    def resource_id(self, name: str) -> Any:
        """Return the value of ``get_resource``. Raises InvalidTemplateReference."""
        resource = self._session.resources.find(name)
        if resource is None:
            raise InvalidTemplateReference(f'The specified reference "{name}" is incorrect.')
        return self._session.type_of(resource).reference(self._session.context, resource)

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        """Return an attribute, or its part at the path. Raises StackValidationFailed for an unknown attribute."""
        resource = self._session.resources.find(name)
        if resource is None or resource.action in (Action.INIT, Action.DELETE):
            return None
        if attribute == ALL_ATTRIBUTES:
            return all_attributes(self._session, resource)
        kind = self._session.type_of(resource)
        try:
            return kind.attribute_at(self._session.context, resource, attribute, tuple(path))
        except NoSuchAttribute:
            if attribute == SHOW:
                return select(kind.show(self._session.context, resource), path)
            raise describe_incorrect(name, attribute) from None

    def file(self, name: str) -> str:
        """Return the text of a file of the template. Raises KeyError."""
        return stacks.source(self._session.tx, self._session.stack.root_id).files[name]

    def facade(self, part: str) -> Any:
        """Return a part of the parent's resource that the stack implements. Raises StackValidationFailed."""
        resource = self._session.facade
        if resource is None:
            raise StackValidationFailed("resource_facade is for nested templates: this stack is in no other.")
        return resource.metadata if part == "metadata" else resource.definition.get(part)


def describe_incorrect(name: str, attribute: str) -> StackValidationFailed:
    """Return the error for a reference to an attribute that the resource does not have."""
    return StackValidationFailed(f"The Referenced Attribute ({name} {attribute}) is incorrect.")
