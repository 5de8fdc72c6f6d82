"""Watches an operation on a stack until it ends, by its events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stoker_client.errors import NotFound
from stoker_client.polling import attempts
from stoker_client.shapes import Event, Resource
from stoker_client.stacks import Operation, Stacks, begins_operation, is_of_stack


@dataclass(frozen=True)
class Snapshot:
    """The state of an operation at one moment."""

    #: The stack, as ``name/id``.
    ref: str
    status: str = ""
    reason: str = ""
    #: The events of the operation, oldest first.
    events: tuple[Event, ...] = ()
    #: The resources that the operation has reached, and those that wait for their creation.
    resources: tuple[Resource, ...] = ()
    #: The action of a later operation that began before this one had ended.
    superseded_by: str | None = None

    @property
    def name(self) -> str:
        """The name of the stack."""
        return self.ref.partition("/")[0]

    @property
    def over(self) -> bool:
        """Whether the operation has ended."""
        return self.superseded_by is not None or not (self.status or "_IN_PROGRESS").endswith("_IN_PROGRESS")


def watch(stacks: Stacks, operation: Operation, *, with_resources: bool) -> Iterator[Snapshot]:
    """
    Yield snapshots of an operation until it ends. The last one is the final state.

    Raises NotFound if the stack does not exist at the beginning.
    """
    ref, snapshot, events = operation.ref, Snapshot(operation.ref), list[Event]()
    for _ in attempts():
        try:
            if events:
                events = [*events, *stacks.events(ref, after=events[-1]["id"], patient=True)]
            else:
                events = stacks.operation_events(operation)
            snapshot = read_events(ref, events)
            if with_resources:
                snapshot = replace(snapshot, resources=_resources(stacks, snapshot))
        except NotFound:
            if not events:
                raise
            # The stack may be removed between two polls, which completes the deletion.
            snapshot = replace(snapshot, status="DELETE_COMPLETE", resources=())
        yield snapshot
        if snapshot.over:
            return


def follow_events(stacks: Stacks, ref: str) -> Iterator[Event]:
    """Yield the events of the stack ``ref`` (``name/id``) so far and further ones, until the stack is deleted."""
    last: str | None = None
    for _ in attempts():
        try:
            events = stacks.events(ref, after=last, patient=True)
        except NotFound:
            return
        for event in events:
            last = event["id"]
            yield event
            if event["resource_status"] == "DELETE_COMPLETE" and is_of_stack(event, ref):
                return


def read_events(ref: str, events: Sequence[Event]) -> Snapshot:
    """Return the state of the operation on the stack ``ref`` that begins with the first of ``events``."""
    end = next((i for i, event in enumerate(events) if i and begins_operation(event, ref)), len(events))
    own = events[:end]
    last = next((event for event in reversed(own) if is_of_stack(event, ref)), None)
    if last is None:
        return Snapshot(ref, events=tuple(own))
    snapshot = Snapshot(ref, last["resource_status"], last.get("resource_status_reason") or "", tuple(own))
    if end == len(events) or snapshot.over:
        return snapshot
    return replace(snapshot, superseded_by=events[end]["resource_status"].removesuffix("_IN_PROGRESS"))


def _resources(stacks: Stacks, snapshot: Snapshot) -> tuple[Resource, ...]:
    """Read the resources after the events, so that resources are never older than a final status."""
    if snapshot.status == "DELETE_COMPLETE":
        return ()
    names = {event["resource_name"] for event in snapshot.events}
    resources = sorted(stacks.resources(snapshot.ref, patient=True), key=_order)
    return tuple(
        resource
        for resource in resources
        if resource["resource_name"] in names or resource["resource_status"].startswith("INIT_")
    )


def _order(resource: Resource) -> tuple[str, str]:
    return resource.get("creation_time") or "", resource["resource_name"]
