"""/v1/{project}/stacks/{name}/{id}/snapshots"""

from __future__ import annotations

from typing import Any

from stoker.http import params
from stoker.http.heat import serializers, stack_lookup
from stoker.http.request_context import RequestContext, Response
from stoker.model.stack import Snapshot
from stoker.stacks import snapshots as taking
from stoker.store import snapshots
from stoker.store.tx import Tx


def create(request: RequestContext) -> Response:
    """Take a snapshot of the stack. Raises ActionInProgress, NotSupported or Invalid."""
    body = params.body(request) if request.body.strip() else {}
    name = params.text(body.get("name"), "name")

    def do(tx: Tx) -> Snapshot:
        found = stack_lookup.stack(tx, request, live=True)
        stack_lookup.refuse_nested(found)
        return taking.take(tx, request.app.engine, found.id, name)

    return Response(200, _serialize(request.app.store.write(do)))


def index(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = snapshots.of_stack(tx, stack_lookup.stack(tx, request).id)
    return Response(200, {"snapshots": [_serialize(each) for each in found]})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = _snapshot(tx, request)
    return Response(200, {"snapshot": _serialize(found)})


def delete(request: RequestContext) -> Response:
    request.app.store.write(lambda tx: snapshots.delete(tx, _snapshot(tx, request).id))
    return Response(204)


def restore(request: RequestContext) -> Response:
    """Update the stack to the state of the snapshot. Raises NotSupported."""

    def do(tx: Tx) -> None:
        found = stack_lookup.stack(tx, request, live=True)
        taking.restore(tx, request.app.engine, found.id, _snapshot(tx, request))

    request.app.store.write(do)
    return Response(202)


def _snapshot(tx: Tx, request: RequestContext) -> Snapshot:
    return snapshots.get(tx, stack_lookup.stack(tx, request).id, request.path["snapshot_id"])


def _serialize(snapshot: Snapshot) -> dict[str, Any]:
    data = {name: part for name, part in snapshot.data.items() if name != "source"}
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "action": "SNAPSHOT",
        "status": snapshot.status.value,
        "status_reason": snapshot.reason,
        "data": data,
        "creation_time": serializers.time(snapshot.created_at),
    }
