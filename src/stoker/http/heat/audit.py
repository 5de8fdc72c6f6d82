"""/v1/{project}/audit: decisions of policies and changes of policies (Stoker's own)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Count, Positive, Query, RowNumber, Time, fill
from stoker.http.request_context import RequestContext
from stoker.model.audit import Entry, Outcome
from stoker.store import audit, rows, servers
from stoker.store.tx import Tx

#: Entries of a response by default, and at most.
_LIMIT = 1000


class AuditEntry(Answer):
    id: Count
    time: Time
    actor: Annotated[str | None, Meta(description="The name of the user")]
    action: Annotated[str, Meta(description="Such as `run CREATE` or `change policy`")]
    outcome: Outcome
    server_id: str | None
    deployment_id: str | None
    stack_id: str | None
    reason: str


class AuditQuery(Query):
    limit: Positive = _LIMIT
    marker: Annotated[RowNumber | None, Meta(description="The id of an entry: only older entries are listed")] = None
    server: Annotated[str | None, Meta(description="The name or id of a server")] = None


@operation(200, {"audit": list[AuditEntry]})
def index(request: RequestContext, tx: Tx, query: AuditQuery) -> dict[str, Any]:
    """List the audit log's entries, newest first."""
    server_id = _server_id(tx, request, query.server)
    entries = audit.list_all(
        tx, request.project, server_id=server_id, limit=min(query.limit, _LIMIT), before=query.marker
    )
    return {"audit": [_serialize(entry) for entry in entries]}


def _server_id(tx: Tx, request: RequestContext, name: str | None) -> str | None:
    """Return the id of the server with this name or id; ids of deleted servers are allowed."""
    if not name or servers.find(tx, name) is not None:
        return name or None
    namesakes = servers.find_by_name(tx, name, request.project)
    return namesakes[0].id if len(namesakes) == 1 else name


def _serialize(entry: Entry) -> AuditEntry:
    return fill(AuditEntry, entry.decision, id=entry.seq, time=rows.heat_time(entry.at))
