"""/v1/{project}/stacks/{name}/{id}/snapshots"""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding, shapes
from stoker.model.stack import Snapshot
from stoker.stacks import snapshots as taking
from stoker.store import snapshots
from stoker.store.tx import Tx


def create(call: Call) -> Reply:
    body = reading.body(call) if call.body.strip() else {}
    name = reading.text(body.get("name"), "name")

    def do(tx: Tx) -> Snapshot:
        found = finding.stack(tx, call, live=True)
        finding.refuse_nested(found)
        return taking.take(tx, call.services.engine, found.id, name)

    return Reply(200, _shown(call.services.store.write(do)))


def index(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = snapshots.of_stack(tx, finding.stack(tx, call).id)
    return Reply(200, {"snapshots": [_shown(each) for each in found]})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = _snapshot(tx, call)
    return Reply(200, {"snapshot": _shown(found)})


def delete(call: Call) -> Reply:
    call.services.store.write(lambda tx: snapshots.delete(tx, _snapshot(tx, call).id))
    return Reply(204)


def restore(call: Call) -> Reply:
    def do(tx: Tx) -> None:
        found = finding.stack(tx, call, live=True)
        taking.restore(tx, call.services.engine, found.id, _snapshot(tx, call))

    call.services.store.write(do)
    return Reply(202)


def _snapshot(tx: Tx, call: Call) -> Snapshot:
    return snapshots.get(tx, finding.stack(tx, call).id, call.path["snapshot_id"])


def _shown(snapshot: Snapshot) -> dict[str, Any]:
    data = {name: part for name, part in snapshot.data.items() if name != "source"}
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "action": "SNAPSHOT",
        "status": snapshot.status.value,
        "status_reason": snapshot.reason,
        "data": data,
        "creation_time": shapes.time(snapshot.created_at),
    }
