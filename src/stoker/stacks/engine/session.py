"""The unit of work on one stack in one transaction: collects reads and changes, and writes them once."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import cached_property
from typing import Any
from uuid import uuid4

from stoker import hot
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources.base import Context, ResourceType
from stoker.stacks.engine import Engine
from stoker.stacks.engine.event_log import EventLog
from stoker.stacks.engine.plan import NewPlan, Plan, StoredPlan
from stoker.stacks.engine.resource_set import ResourceSet
from stoker.store import resources, stacks
from stoker.store.tx import Tx


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
        self.resources = ResourceSet(tx, stack.id)
        self.events = EventLog(tx, engine)

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

    def abandon_resource(self, resource: Resource, reason: str) -> Resource:
        """Fail a resource that is no longer awaited. Return the failed resource."""
        failed = replace(resource, status=Status.FAILED, reason=reason)
        self.resources.change(failed)
        self.events.record(self.stack, failed)
        return failed

    def save(self) -> None:
        """Write all changes. May be called repeatedly, where a query needs the changes."""
        self.add_unreached()
        for resource in self.resources.unsaved():
            if resource.physical_id and self.engine.type(resource.type).has_live_metadata:
                self.tx.bump_document(resource.physical_id)  # the metadata for the server's agent includes the resource
        self.resources.save()
        self.plan.save()
        self.events.post(self.stack)
        self.save_stack()

    def save_stack(self) -> None:
        """Write the stack's own row, for code that reads the row before the session is saved."""
        if self.stack is not self._saved:
            stacks.save(self.tx, self.stack)
            self._saved = self.stack

    def add_unreached(self) -> None:
        """
        Add rows for resources that the present plan has not started, so that lists include them even after a failure.
        """
        if not isinstance(self.plan, NewPlan):
            return  # resources of a stored plan were added when it was stored
        for name, definition in self.plan.definitions().items():
            if self.resources.find(name) is None:
                mapped_from = definition.get("mapped_from")
                self.resources.add(
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
