"""The API of stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from stoker_client.collection import PAGE, iterate_pages, part, segment
from stoker_client.errors import BadInput, NotFound
from stoker_client.references import choose, is_id, is_prefix
from stoker_client.shapes import Event, Output, PlannedRun, Resource, ServerPreview, Stack, UpdatePreview

if TYPE_CHECKING:
    from stoker_client.wire import Wire

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Operation:
    """
    An operation on the stack ``ref`` (``name/id``).

    ``id`` is the id of its first event, or of the rollback in it; None is the newest operation.
    """

    ref: str
    id: str | None = None


class Stacks:
    """
    Calls to the API of stacks.

    ``ref`` is a name, an id, a prefix of an id, or ``name/id``. The service redirects names and ids.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[Stack]:
        """Return the stacks of the project, newest first."""
        return part(self._wire.get("/stacks"), "stacks")

    def show(self, ref: str, *, outputs: bool = True, patient: bool = False) -> Stack:
        """Return one stack. Without ``outputs``, the service does not compute them. ``patient`` waits for a restart."""
        query = None if outputs else {"resolve_outputs": "false"}
        return self._resolving(ref, lambda id_: part(self._wire.get(_path(id_), query, patient=patient), "stack"))

    def canonical(self, ref: str) -> str:
        """Return ``name/id``, the canonical form, which identifies a stack permanently."""
        if is_id(ref.partition("/")[2]):
            return ref
        stack = self.show(ref, outputs=False)
        return f"{stack['stack_name']}/{stack['id']}"

    def create(self, body: Mapping[str, Any]) -> Operation:
        """Create a stack."""
        answer, id_ = self._wire.begin("POST", "/stacks", body)
        return Operation(f"{body['stack_name']}/{part(part(answer, 'stack'), 'id')}", id_)

    def update(self, ref: str, body: Mapping[str, Any], *, existing: bool) -> Operation:
        """Update a stack. With ``existing``, only the parts in ``body`` change."""
        return self._begin("PATCH" if existing else "PUT", ref, body=body)

    def delete(self, ref: str) -> Operation:
        """Start to delete a stack."""
        return self._begin("DELETE", ref)

    def resources(self, ref: str, *, patient: bool = False) -> list[Resource]:
        """Return the resources of a stack."""
        answer = self._resolving(ref, lambda id_: self._wire.get(f"{_path(id_)}/resources", patient=patient))
        return part(answer, "resources")

    def resource(self, ref: str) -> Resource:
        """
        Return the resource of ``STACK/RESOURCE``, or ``STACK/RESOURCE/RESOURCE`` in a nested stack.

        Raises BadInput if the reference is malformed, and NotFound if the resource has no physical id.
        """
        stack, *names = ref.split("/")
        if not names or not all(names):
            raise BadInput(f"{ref!r} is not STACK/RESOURCE")
        for name in names:
            answer = self._wire.get(f"{_path(self.canonical(stack))}/resources/{segment(name)}")
            resource: Resource = part(answer, "resource")
            if not (stack := resource.get("physical_resource_id") or ""):
                raise NotFound(f"the resource {ref} is {resource['resource_status']}: nothing is there yet", 404)
        return resource

    def walk_resources(self, ref: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """
        Yield the resources of a stack: the path of names, the URL path, and the entry of the list.

        Resources that represent nested stacks are replaced by those of the nested stacks.
        """
        return self._walk(_path(self.canonical(ref)), "")

    def _walk(self, path: str, above: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for entry in part(self._wire.get(f"{path}/resources"), "resources"):
            name = above + entry["resource_name"]
            nested = [link["href"] for link in entry.get("links", ()) if link.get("rel") == "nested"]
            if nested:
                yield from self._walk("/stacks/" + nested[0].partition("/stacks/")[2], f"{name}/")
            else:
                yield name, f"{path}/resources/{segment(entry['resource_name'])}", entry

    def events(self, ref: str, *, after: str | None = None, patient: bool = False) -> list[Event]:
        """Return events, oldest first; with ``after``, the events after the one with that id."""
        query = {"sort_dir": "asc", "marker": after}
        answer = self._wire.get(f"{_path(ref)}/events", query, patient=patient)
        return part(answer, "events")

    def operation_events(self, operation: Operation) -> list[Event]:
        """Return the events since the begin of an operation, oldest first, also those of later operations."""
        ref, events, is_complete = operation.ref, list[Event](), operation.id is None
        for event in iterate_pages(self._wire, f"{_path(ref)}/events", "events", {"sort_dir": "desc"}, PAGE):
            events.append(event)
            is_complete = is_complete or event["id"] == operation.id
            if is_complete and begins_operation(event, ref):
                break
        return events[::-1]

    def act(self, ref: str, action: str) -> Operation:
        """Start ``suspend``, ``resume``, ``check``, ``cancel_update`` or ``cancel_without_rollback``."""
        return self._begin("POST", self.canonical(ref), "/actions", {action: None})

    def preview(self, body: Mapping[str, Any]) -> tuple[Stack, list[PlannedRun]]:
        """Return the stack that ``body`` would create, without creating it, and the runs that it would start."""
        answer = self._wire.send("POST", "/stacks/preview", body)
        return part(answer, "stack"), answer.get("planned_runs") or []

    def preview_on_servers(self, body: Mapping[str, Any]) -> list[ServerPreview]:
        """Start triggers that show what the deployments of the stack that ``body`` would create would change."""
        answer = self._wire.send("POST", "/stacks/server_previews", body)
        return part(answer, "server_previews")

    def preview_update(
        self, ref: str, body: Mapping[str, Any], *, existing: bool, on_servers: bool = False
    ) -> UpdatePreview:
        """
        Return the changes of an update by kind: ``unchanged``, ``updated``, ``replaced``, ``added``, ``deleted``.

        With ``on_servers``, triggers begin that show what the deployments would change.
        """
        verb, query = "PATCH" if existing else "PUT", "?on_servers=true" if on_servers else ""
        answer = self._wire.send(verb, f"{_path(self.canonical(ref))}/preview{query}", body)
        part(answer, "resource_changes")
        return answer

    def export(self, ref: str) -> dict[str, Any]:
        """Return the data with which the stack can be adopted."""
        return self._wire.get(f"{_path(self.canonical(ref))}/export")

    def abandon(self, ref: str) -> dict[str, Any]:
        """Abandon the stack: return the data of ``export`` and remove the stack, but not its resources."""
        return self._wire.send("DELETE", f"{_path(self.canonical(ref))}/abandon")

    def snapshots(self, ref: str) -> list[dict[str, Any]]:
        """Return the snapshots of a stack, oldest first."""
        answer = self._wire.get(f"{_path(self.canonical(ref))}/snapshots")
        return part(answer, "snapshots")

    def take_snapshot(self, ref: str, name: str | None) -> dict[str, Any]:
        """Take a snapshot of a stack."""
        return self._wire.send("POST", f"{_path(self.canonical(ref))}/snapshots", {"name": name})

    def snapshot_id(self, ref: str, snapshot: str) -> str:
        """Return the id of a snapshot by its name or a prefix of its id."""
        return snapshot if is_id(snapshot) else str(choose(self.snapshots(ref), snapshot, "snapshot")["id"])

    def snapshot(self, ref: str, id_: str) -> dict[str, Any]:
        """Return one snapshot with its data."""
        answer = self._wire.get(f"{_path(self.canonical(ref))}/snapshots/{segment(id_)}")
        return part(answer, "snapshot")

    def delete_snapshot(self, ref: str, id_: str) -> None:
        """Delete a snapshot."""
        self._wire.send("DELETE", f"{_path(self.canonical(ref))}/snapshots/{segment(id_)}")

    def restore(self, ref: str, id_: str) -> Operation:
        """Restore a stack from a snapshot."""
        return self._begin("POST", self.canonical(ref), f"/snapshots/{segment(id_)}/restore", {})

    def output(self, ref: str, key: str) -> Output:
        """Compute and return one output."""
        answer = self._wire.get(f"{_path(self.canonical(ref))}/outputs/{segment(key)}")
        return part(answer, "output")

    def template(self, ref: str) -> Any:
        """Return the stack's template."""
        return self._resolving(ref, lambda id_: self._wire.get(f"{_path(id_)}/template"))

    def _begin(self, method: str, ref: str, path: str = "", body: Mapping[str, Any] | None = None) -> Operation:
        return Operation(ref, self._wire.begin(method, f"{_path(ref)}{path}", body)[1])

    def _resolving(self, ref: str, call: Callable[[str], Answer]) -> Answer:
        """Call ``call`` with ``ref``, or with the id of the stack whose id begins with ``ref``."""
        try:
            return call(ref)
        except NotFound:
            if not is_prefix(ref):
                raise
            stack = choose(self.all(), ref, "stack", name_key="stack_name")
            return call(f"{stack['stack_name']}/{stack['id']}")


def begins_operation(event: Event, ref: str) -> bool:
    """Return whether an operation on the stack ``ref`` begins with ``event``. A rollback belongs to what it undoes."""
    status = event["resource_status"]
    return is_of_stack(event, ref) and status.endswith("_IN_PROGRESS") and not status.startswith("ROLLBACK_")


def is_of_stack(event: Event, ref: str) -> bool:
    """Return whether ``event`` is an event of the stack ``ref`` (``name/id``) itself."""
    return event.get("physical_resource_id") == ref.partition("/")[2]


def _path(ref: str) -> str:
    name, slash, id_ = ref.partition("/")
    return f"/stacks/{segment(name)}/{segment(id_)}" if slash else f"/stacks/{segment(name)}"
