"""/v1/{project}/audit: what users did, what ran on servers, and what was refused (Stoker's own)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from stoker.http.contracts import Answer, Count, Moment, Positive, Query, RowNumber, Time, fill, operation
from stoker.http.request import RequestContext
from stoker.model.audit import Outcome
from stoker.model.ids import SITE
from stoker.store import audit, servers
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
    server_name: str | None
    deployment_id: str | None
    stack_id: str | None
    stack_name: str | None
    resource_name: str | None
    config_name: str | None
    reason: str


class AuditQuery(Query):
    limit: Positive = _LIMIT
    marker: Annotated[RowNumber | None, Meta(description="The id of an entry: only older entries are listed")] = None
    server: Annotated[str, Meta(description="The name or id of a server, also of a deleted one")] = ""
    stack: Annotated[str, Meta(description="The name or id of a stack, also of a deleted one")] = ""
    actor: Annotated[str, Meta(description="The name of a user")] = ""
    outcome: Outcome | None = None
    action: Annotated[str, Meta(description="The beginning of an action, such as `run`")] = ""
    about: Annotated[str, Meta(description="The name or id of a server, stack, resource, config or deployment")] = (
        field(name="object", default="")
    )
    since: Annotated[Moment | None, Meta(description="Only entries of this time and later ones")] = None
    until: Annotated[Moment | None, Meta(description="Only entries before this time")] = None


@operation(200, {"audit": list[AuditEntry]})
def index(request: RequestContext, tx: Tx, query: AuditQuery) -> dict[str, Any]:
    """List the project's entries of the audit log, newest first."""
    return _list(tx, query, request.project)


@operation(200, {"audit": list[AuditEntry]})
def index_site(_: RequestContext, tx: Tx, query: AuditQuery) -> dict[str, Any]:
    """List the entries of no project, newest first: users, projects, roles, and failed logins."""
    return _list(tx, query, SITE)


def _list(tx: Tx, query: AuditQuery, project_id: str) -> dict[str, Any]:
    live = servers.find(tx, query.server) if query.server else None
    entries = audit.list_all(
        tx,
        project_id,
        server=query.server if live is None else live.name,
        stack=query.stack,
        actor=query.actor,
        outcome=query.outcome or "",
        action=query.action,
        about=query.about,
        since=query.since,
        until=query.until,
        limit=min(query.limit, _LIMIT),
        before=query.marker,
    )
    return {"audit": [fill(AuditEntry, entry.decision, id=entry.seq, time=entry.at) for entry in entries]}
