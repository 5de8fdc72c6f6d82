"""/v1/{project}/audit: decisions of policies and changes of policies (Stoker's own)."""

from __future__ import annotations

from typing import Any

from stoker.http import params
from stoker.http.heat import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.model.audit import Entry
from stoker.store import audit, servers
from stoker.store.tx import Tx

#: Entries of a response by default, and at most.
_LIMIT = 1000


def index(request: RequestContext) -> Response:
    """List the audit log's entries, newest first."""
    limit = params.whole(request.query.get("limit"), "limit", 1)
    marker = params.whole(request.query.get("marker"), "marker", 1, most=params.LAST)
    with request.app.store.read() as tx:
        server_id = _server_id(tx, request)
        found = audit.list_all(
            tx, request.project, server_id=server_id, limit=min(limit or _LIMIT, _LIMIT), before=marker
        )
    return Response(200, {"audit": [_serialize(each) for each in found]})


def _server_id(tx: Tx, request: RequestContext) -> str | None:
    """Return the id of the server that the query names by name or id; ids of deleted servers are allowed."""
    said = request.query.get("server")
    if not said or servers.find(tx, said) is not None:
        return said or None
    same = servers.find_by_name(tx, said, request.project)
    return same[0].id if len(same) == 1 else said


def _serialize(entry: Entry) -> dict[str, Any]:
    made = entry.decision
    return {
        "id": entry.seq,
        "time": serializers.time(entry.at),
        "actor": made.actor,
        "action": made.action,
        "outcome": made.outcome.value,
        "server_id": made.server_id,
        "deployment_id": made.deployment_id,
        "stack_id": made.stack_id,
        "reason": made.reason,
    }
