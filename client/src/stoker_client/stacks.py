"""The API of stacks, and the watch of an operation on a stack by its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stoker_client.collection import (
    Anything,
    Collection,
    ReadOnlyCollection,
    choose,
    is_id,
    iterate_pages,
    part,
    segment,
)
from stoker_client.errors import BadInput, NotFound
from stoker_client.shapes import Event, Resource, Stack
from stoker_client.updates import attempts

if TYPE_CHECKING:
    from stoker_client.wire import Wire


@dataclass(frozen=True)
class Operation:
    """
    An operation on the stack ``ref`` (``name/id``).

    ``id`` is the id of its first event, or of the rollback in it; None is the newest operation.
    """

    ref: str
    id: str | None = None


class Stacks(ReadOnlyCollection[Stack]):
    """Stacks, newest first. ``ref`` is a name, an id, a prefix of an id, or ``name/id``."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/stacks", "stack", finds_names=True)

    def find_id(self, ref: str) -> str:
        """Return the id of a stack. Raises NotFound or Ambiguous."""
        return self.canonical(ref).rpartition("/")[2]

    def _search(self, ref: str) -> str:
        """Return ``name/id``."""
        stack = choose(self.all(), ref, "stack", name_key="stack_name")
        return f"{stack['stack_name']}/{stack['id']}"

    def show(self, ref: str, *, patient: bool = False, outputs: bool = True, **_: object) -> Stack:
        """Return one stack. Without ``outputs``, the service does not compute them."""
        query = {} if outputs else {"resolve_outputs": "false"}
        return super().show(ref, patient=patient, **query)

    def _path_of(self, id_: str) -> str:
        return "/".join((self.path, *map(segment, id_.split("/", 1))))

    def _permanent(self, ref: str) -> str:
        """Return the path of a stack that stays the same if another stack gets the name."""
        return self._path_of(self.canonical(ref))

    def canonical(self, ref: str) -> str:
        """Return ``name/id``, the canonical form, which identifies a stack permanently."""
        if is_id(ref.partition("/")[2]):
            return ref
        stack = self.show(ref, outputs=False)
        return f"{stack['stack_name']}/{stack['id']}"

    def create(self, body: Mapping[str, Any]) -> Operation:
        """Start to create a stack."""
        answer, id_ = self.wire.begin("POST", "/stacks", body)
        return Operation(f"{body['stack_name']}/{part(part(answer, 'stack'), 'id')}", id_)

    def update(self, ref: str, body: Mapping[str, Any], *, existing: bool) -> Operation:
        """Start to update a stack. With ``existing``, only the parts in ``body`` change."""
        return self._begin("PATCH" if existing else "PUT", ref, body=body)

    def delete(self, ref: str) -> Operation:
        """Start to delete a stack."""
        return self._begin("DELETE", self.canonical(ref))

    def resources(self, ref: str, *, patient: bool = False) -> list[Resource]:
        """Return the resources of a stack."""
        answer = self._at(ref, lambda path: self.wire.get(f"{path}/resources", patient=patient))
        return part(answer, "resources")

    def graph(self, ref: str, *, nested_depth: int = 0) -> Anything:
        """Return the resources of a stack, and of nested stacks to a depth, with servers, times and dependencies."""
        return part(self.wire.get(f"{self._permanent(ref)}/graph", {"nested_depth": nested_depth}), "graph")

    def resource(self, ref: str) -> Resource:
        """
        Return the resource of ``STACK/RESOURCE``, or ``STACK/RESOURCE/RESOURCE`` in a nested stack.

        Raises BadInput if the reference is malformed, and NotFound if the resource has no physical id.
        """
        stack, *names = ref.split("/")
        if not names or not all(names):
            raise BadInput(f"{ref!r} is not STACK/RESOURCE")
        for name in names:
            answer = self.wire.get(f"{self._permanent(stack)}/resources/{segment(name)}")
            resource: Resource = part(answer, "resource")
            if not (stack := resource.get("physical_resource_id") or ""):
                raise NotFound(f"the resource {ref} is {resource['resource_status']}: nothing is there yet", 404)
        return resource

    def events(self, ref: str, *, after: str | None = None, patient: bool = False) -> list[Event]:
        """Return events, oldest first; with ``after``, the events after the one with that id."""
        query = {"sort_dir": "asc", "marker": after}
        answer = self.wire.get(f"{self._path_of(ref)}/events", query, patient=patient)
        return part(answer, "events")

    def operation_events(self, operation: Operation) -> list[Event]:
        """Return the events since the begin of an operation, oldest first, also those of later operations."""
        ref, events, is_complete = operation.ref, list[Event](), operation.id is None
        path, query = f"{self._path_of(ref)}/events", {"sort_dir": "desc"}
        for event in iterate_pages(self.wire, path, "events", query, self.page_size):
            events.append(event)
            is_complete = is_complete or event["id"] == operation.id
            if is_complete and begins_operation(event, ref):
                break
        return events[::-1]

    def act(self, ref: str, action: str) -> Operation:
        """Start ``suspend``, ``resume``, ``check``, ``cancel_update`` or ``cancel_without_rollback``."""
        return self._begin("POST", self.canonical(ref), "/actions", {action: None})

    def preview(self, body: Mapping[str, Any]) -> tuple[Stack, list[Anything]]:
        """Return the stack that ``body`` would create, without creating it, and the runs that it would start."""
        answer = self.wire.send("POST", "/stacks/preview", body)
        return part(answer, "stack"), answer.get("planned_runs") or []

    def preview_on_servers(self, body: Mapping[str, Any]) -> list[Anything]:
        """Start triggers that show what the deployments of the stack that ``body`` would create would change."""
        answer = self.wire.send("POST", "/stacks/server_previews", body)
        return part(answer, "server_previews")

    def preview_update(
        self, ref: str, body: Mapping[str, Any], *, existing: bool, on_servers: bool = False
    ) -> Anything:
        """
        Return the changes of an update by kind: ``unchanged``, ``updated``, ``replaced``, ``added``, ``deleted``.

        With ``on_servers``, triggers begin that show what the deployments would change.
        """
        verb, query = "PATCH" if existing else "PUT", "?on_servers=true" if on_servers else ""
        answer = self.wire.send(verb, f"{self._permanent(ref)}/preview{query}", body)
        part(answer, "resource_changes")
        return answer

    def export(self, ref: str) -> dict[str, Any]:
        """Return the data with which the stack can be adopted."""
        return self.wire.get(f"{self._permanent(ref)}/export")

    def abandon(self, ref: str) -> dict[str, Any]:
        """Abandon the stack: return the data of ``export`` and remove the stack, but not its resources."""
        return self.wire.send("DELETE", f"{self._permanent(ref)}/abandon")

    def snapshots(self, ref: str) -> Collection[Anything]:
        """Return the snapshots of a stack, oldest first."""
        return Collection(self.wire, f"{self._permanent(ref)}/snapshots", "snapshot")

    def take_snapshot(self, ref: str, name: str | None) -> Anything:
        """Take a snapshot of a stack."""
        return self.wire.send("POST", f"{self._permanent(ref)}/snapshots", {"name": name})

    def restore(self, ref: str, id_: str) -> Operation:
        """Restore a stack from a snapshot."""
        return self._begin("POST", self.canonical(ref), f"/snapshots/{segment(id_)}/restore", {})

    def output(self, ref: str, key: str) -> Anything:
        """Compute and return one output."""
        answer = self.wire.get(f"{self._permanent(ref)}/outputs/{segment(key)}")
        return part(answer, "output")

    def template(self, ref: str) -> Any:
        """Return the stack's template."""
        return self._at(ref, lambda path: self.wire.get(f"{path}/template"))

    def _begin(self, method: str, ref: str, path: str = "", body: Mapping[str, Any] | None = None) -> Operation:
        return Operation(ref, self.wire.begin(method, f"{self._path_of(ref)}{path}", body)[1])


def begins_operation(event: Event, ref: str) -> bool:
    """Return whether an operation on the stack ``ref`` begins with ``event``. A rollback belongs to what it undoes."""
    status = event["resource_status"]
    return is_of_stack(event, ref) and status.endswith("_IN_PROGRESS") and not status.startswith("ROLLBACK_")


def is_of_stack(event: Event, ref: str) -> bool:
    """Return whether ``event`` is an event of the stack ``ref`` (``name/id``) itself."""
    return event.get("physical_resource_id") == ref.partition("/")[2]


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
