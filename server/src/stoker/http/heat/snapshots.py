"""/v1/{project}/stacks/{name}/{id}/snapshots"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from stoker.http.contracts import Answer, Body, Id, Name, Time, fill, operation
from stoker.http.heat import stack_lookup, stack_operations
from stoker.http.request import RequestContext, Response
from stoker.model.stack import Snapshot
from stoker.model.status import Status
from stoker.stacks import snapshots as stack_snapshots
from stoker.store import stacks
from stoker.store.tx import Tx


class NewSnapshot(Body):
    name: Name | None = None


class StackSnapshot(Answer):
    id: Id
    name: str | None
    action: Literal["SNAPSHOT"]
    status: Status
    reason: str = field(name="status_reason")
    data: dict[str, Any]
    created_at: Time = field(name="creation_time")


@operation(200, StackSnapshot, errors=(409,), body_optional=True)
def create(request: RequestContext, tx: Tx, body: NewSnapshot) -> StackSnapshot:
    """Take a snapshot of the stack. Raises ActionInProgress, NotSupported or Invalid."""
    stack = stack_lookup.root_stack(tx, request)
    return _serialize(stack_snapshots.take(tx, request.app.engine, stack.id, body.name))


@operation(200, {"snapshots": list[StackSnapshot]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the snapshots of a stack."""
    page = stacks.list_snapshots(tx, stack_lookup.stack(tx, request).id)
    return {"snapshots": [_serialize(snapshot) for snapshot in page]}


@operation(200, {"snapshot": StackSnapshot})
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return a snapshot."""
    return {"snapshot": _serialize(_snapshot(tx, request))}


@operation(204, errors=(409,))
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a snapshot. Raises ActionInProgress if clouds have saved resources and the stack is busy."""
    stack_snapshots.delete(tx, request.app.engine, _snapshot(tx, request))


@operation(202, errors=(409,), headers=(stack_operations.OPERATION,))
def restore(request: RequestContext, tx: Tx) -> Response:
    """Update the stack to the state of the snapshot. Raises NotSupported."""
    stack = stack_lookup.stack(tx, request, live=True)
    restored = stack_snapshots.restore(tx, request.app.engine, stack.id, _snapshot(tx, request))
    return Response(202, headers=stack_operations.operation_header(restored))


def _snapshot(tx: Tx, request: RequestContext) -> Snapshot:
    return stacks.get_snapshot(tx, stack_lookup.stack(tx, request).id, request.path["snapshot_id"])


def _serialize(snapshot: Snapshot) -> StackSnapshot:
    data = {name: part for name, part in snapshot.data.items() if name != "source"}
    return fill(StackSnapshot, snapshot, action="SNAPSHOT", data=data)
