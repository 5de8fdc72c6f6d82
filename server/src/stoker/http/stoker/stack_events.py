"""The events of a stack and its resources."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from stoker.http.event_stream import PAUSE_SECONDS, Batch, Event
from stoker.http.fields import Answer, Id, Time
from stoker.http.heat.serializers import FullStatus
from stoker.http.stoker import cursors
from stoker.model.stack import Event as StoredEvent
from stoker.model.stack import Stack
from stoker.stacks.engine.session import STACK_TYPE
from stoker.store import events, stacks
from stoker.store.notifier import stack_topic
from stoker.store.rows import heat_time
from stoker.store.tx import Tx

#: The events of a stream that chooses none.
_USUAL = frozenset(("stack", "resource"))
#: Events of one read.
_PAGE = 500


class StackState(Answer):
    """The state of a stack."""

    id: Id
    stack_name: Id
    stack_status: FullStatus
    stack_status_reason: str
    deleted: bool


class ResourceState(Answer):
    """The state of a resource after one of the stack's events."""

    event_id: Id
    resource_name: Id
    physical_resource_id: Annotated[str | None, Meta(description="As in a resource")]
    resource_status: FullStatus
    resource_status_reason: str
    event_time: Time


class StackReader:
    """
    The position of a stream among the events of a stack: ``stack`` when its state changes, ``resource`` for each event.

    A position is the number of the last event that was read. Without one, the stream begins with the events to come.
    """

    is_repeatable = True
    pause = PAUSE_SECONDS

    def __init__(self, id: str, project: str, after: str, kinds: frozenset[str] = frozenset()) -> None:
        self._id, self._project, self._kinds = id, project, kinds or _USUAL
        self._after = cursors.parse_number(after)
        self._is_first = True
        self._state: StackState | None = None

    def topics(self) -> Collection[str]:
        return (stack_topic(self._id),)

    def read(self, tx: Tx, _notified: Collection[str] | None = None) -> Batch:
        """Return the next events; ``end`` follows the deletion of the stack. Raises EntityNotFound."""
        stack = stacks.get(tx, self._id, self._project)
        result = self._start(tx) if self._is_first else []
        page = events.list_after(tx, stack.id, self._after or 0, _PAGE)
        self._after = page[-1].seq if page else self._after
        if "resource" in self._kinds:
            result += [Event("resource", _serialize(event)) for event in page if event.resource_type != STACK_TYPE]
        state, more, is_deleted = _serialize_stack(stack), len(page) == _PAGE, stack.deleted_at is not None
        if "stack" in self._kinds and state != self._state:
            result.append(Event("stack", state))
            self._state = state
        if is_deleted and not more:
            result.append(Event("end", state))
        if result:  # a stream that ends within the batch continues before it
            result[-1] = replace(result[-1], id=str(self._after))
        return Batch(result, over=is_deleted and not more, more=more)

    def _start(self, tx: Tx) -> list[Event]:
        self._is_first = False
        last = events.last_position(tx, self._id) or 0
        if self._after is None or self._after == last or events.has_position(tx, self._id, self._after):
            self._after = last if self._after is None else self._after
            return []
        self._after = last
        return [Event("resync", {"reason": "the cursor is too old: read the stack again"})]


def _serialize(event: StoredEvent) -> ResourceState:
    return ResourceState(
        event_id=event.id,
        resource_name=event.resource_name,
        physical_resource_id=event.physical_id,
        resource_status=f"{event.action}_{event.status}",
        resource_status_reason=event.reason,
        event_time=heat_time(event.at),
    )


def _serialize_stack(stack: Stack) -> StackState:
    return StackState(
        id=stack.id,
        stack_name=stack.name,
        stack_status=f"{stack.action}_{stack.status}",
        stack_status_reason=stack.reason,
        deleted=stack.deleted_at is not None,
    )
