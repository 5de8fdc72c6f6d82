"""/v1/{project}/audit: what policies decided, and who changed them (Stoker's own)."""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model.audit import Entry
from stoker.store import audit, servers
from stoker.store.tx import Tx

#: Entries of one answer where the request says nothing, and at most.
_LIMIT = 1000


def index(call: Call) -> Reply:
    """Newest first."""
    limit = reading.whole(call.query.get("limit"), "limit", 1)
    marker = reading.whole(call.query.get("marker"), "marker", 1, most=reading.LAST)
    with call.services.store.read() as tx:
        server_id = _server_id(tx, call)
        found = audit.listed(tx, call.project, server_id=server_id, limit=min(limit or _LIMIT, _LIMIT), before=marker)
    return Reply(200, {"audit": [_shown(each) for each in found]})


def _server_id(tx: Tx, call: Call) -> str | None:
    """By name or id; the id also of a server that is gone."""
    said = call.query.get("server")
    if not said or servers.find(tx, said) is not None:
        return said or None
    same = servers.named(tx, said, call.project)
    return same[0].id if len(same) == 1 else said


def _shown(entry: Entry) -> dict[str, Any]:
    made = entry.decision
    return {
        "id": entry.seq,
        "time": shapes.time(entry.at),
        "who": made.who,
        "what": made.what,
        "decision": made.decision.value,
        "server_id": made.server_id,
        "deployment_id": made.deployment_id,
        "stack_id": made.stack_id,
        "reason": made.reason,
    }
