"""/v1/{project}/checks: whether servers still are as deployments left them (Stoker's own)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.deployments import checks as deployment_checks
from stoker.deployments import drift
from stoker.hot.words import list_few
from stoker.http import pages
from stoker.http.contracts import Absent, Answer, Body, Id, Query, RequiredName, Text, Time, Whole, fill, operation
from stoker.http.heat.deployments import SoftwareDeployment, enclose, find_described
from stoker.http.heat.runs import RunChange
from stoker.http.request import RequestContext, Response
from stoker.model import selectors
from stoker.model.deployment import CheckState
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.server import Server
from stoker.model.stack import Status
from stoker.servers import enrollment
from stoker.store import audit, checks, deployments, server_lists, servers
from stoker.store.checks import DeploymentCheck
from stoker.store.tx import Tx
from stoker.triggers.sources import find_stack

_SELECTOR = "A condition over labels and facts of servers, such as tier=web and os.family=debian"


class NewCheck(Body, forbid_unknown_fields=True):
    """The deployments to check: those of a stack and its nested stacks, or those on servers."""

    stack: RequiredName | None = None
    servers: Annotated[list[RequiredName], Meta(min_length=1, max_length=1000)] | None = None
    selector: Annotated[Text, Meta(description=_SELECTOR)] | None = None


class CheckQuery(Query):
    state: CheckState | None = None
    stack: Annotated[str | None, Meta(description="The name or id of a stack")] = None
    server: Annotated[str | None, Meta(description="The name or id of a server")] = None
    selector: Annotated[str | None, Meta(description=_SELECTOR)] = None
    deployment_id: Annotated[tuple[str, ...], Meta(description="The checks of these deployments only")] = ()
    limit: Whole | None = None
    marker: Annotated[str | None, Meta(description="The id of a deployment: the list begins after its check")] = None


class ShownCheck(Answer):
    """``pending``: a requested check has no answer yet, so ``state`` is that of an earlier check."""

    deployment_id: Id
    name: Annotated[str | None, Meta(description="The name of the config")]
    stack_id: str | None
    stack_name: str | None
    resource_name: str | None
    server_id: Id
    server_name: str | None
    server_status: str | None
    state: CheckState
    since: Time
    checked_at: Annotated[Time | None, Meta(description="The last report; agents report changes and answers only")]
    requested_at: Time | None
    pending: bool
    check_interval: Annotated[int | None, Meta(description="Seconds; null: on request only")]
    enforce: bool
    reason: str
    summary: Annotated[str, Meta(description="The names of the differences")]
    changes: Annotated[list[RunChange], Meta(description="The differences, of one check only")] | Absent = UNSET


@operation(202, {"checks": list[ShownCheck]}, errors=(409,), example={"stack": "shop"})
def create(request: RequestContext, tx: Tx, body: NewCheck) -> dict[str, Any]:
    """
    Check deployments of a stack, of servers, or of the servers that a selector selects.

    The agents answer as soon as they can. Until then, `pending` is true.
    """
    if sum(part is not None for part in (body.stack, body.servers, body.selector)) != 1:
        raise Invalid("a check needs exactly one of stack, servers and selector")
    if body.stack is not None:
        ids = checks.checkable_in(tx, request.project, find_stack(tx, request.project, body.stack).root_id)
    else:
        ids = checks.checkable_on(tx, request.project, _server_ids(tx, request, body.servers, body.selector))
    deployment_checks.request(tx, ids)
    return {"checks": _serialize(tx, request, checks.list_all(tx, request.project, ids=ids))}


@operation(200, {"checks": list[ShownCheck]}, errors=(409,))
def index(request: RequestContext, tx: Tx, query: CheckQuery) -> Response:
    """List checks, without their differences, in the order of their deployments."""
    server_ids, root_id, start = None, None, None
    if query.server is not None or query.selector is not None:
        named = None if query.server is None else [query.server]
        server_ids = _server_ids(tx, request, named, query.selector)
    if query.stack is not None:
        root_id = find_stack(tx, request.project, query.stack).root_id
    if query.marker:  # an unknown marker is ignored, as in the list of deployments
        start = deployments.position(tx, query.marker, request.project)

    def read(tx: Tx, after: int | None, most: int) -> list[tuple[int, Any]]:
        rows = checks.list_all(
            tx,
            request.project,
            ids=query.deployment_id or None,
            state=query.state,
            server_ids=server_ids,
            root_id=root_id,
            after=after,
            limit=most,
        )
        return [(row.position, shown) for row, shown in zip(rows, _serialize(tx, request, rows), strict=True)]

    return pages.reply(request, tx, "checks", read, first=100, start=start, limit=query.limit)


@operation(200, {"check": ShownCheck})
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return the check of a deployment with its differences."""
    id = request.path["deployment_id"]
    rows = checks.list_all(tx, request.project, ids=[id])
    if not rows:
        raise EntityNotFound(f"The deployment ({id}) has no check: request one, or set its check_interval.")
    (shown,) = _serialize(tx, request, rows)
    shown.changes = [RunChange(**tx.secrets.redact(dict(change))) for change in rows[0].check.changes]
    return {"check": shown}


@operation(202, {"software_deployment": SoftwareDeployment}, errors=(409,))
def repair(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Run a deployment that has drifted again: the same config with the same inputs. Raises Conflict."""
    deployment, user = find_described(tx, request), request.user.user_name
    return enclose(tx, drift.repair(tx, request.app.engine.env, deployment, user))


def _server_ids(
    tx: Tx, request: RequestContext, named: Collection[str] | None, selector: str | None
) -> Collection[str]:
    """Return the ids of the servers with these names or ids that the selector selects. Raises EntityNotFound."""
    ids = None if named is None else [server.id for server in enrollment.find_all(tx, request.project, named)]
    if selector is None:
        return ids or []
    selected = server_lists.iterate_selected(tx, request.project, selectors.parse(selector))
    matches = {server.id for _, server in selected}
    return matches if ids is None else matches & set(ids)


def _serialize(tx: Tx, request: RequestContext, rows: Collection[DeploymentCheck]) -> list[ShownCheck]:
    by_id = servers.find_several(tx, {row.check.server_id for row in rows})
    offline_after = request.app.settings.offline_after
    names = audit.names_of_all(tx, [row.check.deployment_id for row in rows])
    shown = []
    for row in rows:
        server, named = by_id.get(row.check.server_id), names[row.check.deployment_id]
        server = server if server and server.project_id == request.project else None  # a policy may admit others
        status = None if server is None else server.status(tx.now, offline_after)
        shown.append(
            fill(
                ShownCheck,
                row.check,
                name=named["config_name"],
                stack_id=row.stack_id,
                stack_name=named["stack_name"],
                resource_name=named["resource_name"],
                server_name=server.name if server else None,
                server_status=status,
                pending=row.check.requested_at is not None,
                reason=_reason(row, server, status, tx.now),
                summary=_summarize(tx, row),
                changes=UNSET,
            )
        )
    return shown


def _reason(row: DeploymentCheck, server: Server | None, status: str | None, now: datetime) -> str:
    """Return the reason of the check's state as of now, which includes why a request has no answer."""
    check = row.check
    if row.status == Status.IN_PROGRESS:
        run = f"A run is in progress: {row.status_reason}"
        return f"{check.reason}: {row.status_reason}" if check.state is CheckState.DRIFTED else run
    if row.status == Status.FAILED:
        return f"The last run failed: {row.status_reason}"
    if check.requested_at is None:
        is_stale = check.state is CheckState.IN_SYNC and status != "ONLINE"
        return _describe_stale(server, status, now) if server is not None and is_stale else check.reason
    if server is not None and status != "ONLINE":
        return f"The agent has not answered: server {server.name} is {status}"
    return "The agent has not answered yet"


def _describe_stale(server: Server, status: str | None, now: datetime) -> str:
    """Return the reason of a state that the server's agent no longer confirms."""
    if server.last_seen is None:
        return f"Server {server.name} is {status}"
    age = timedelta(seconds=int((now - server.last_seen).total_seconds()))
    return f"It was IN_SYNC {age} ago, when server {server.name} was last seen, which is {status}"


def _summarize(tx: Tx, row: DeploymentCheck) -> str:
    if row.check.state is not CheckState.DRIFTED:
        return ""
    items = (str(change.get("item") or "?") for change in row.check.changes)
    summary: str = tx.secrets.redact(list_few(items, 3))
    return summary
