"""/v1/{project}/servers: the servers of a project (Stoker's own)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from stoker.deployments import server_runs
from stoker.http import audit_trail, pages
from stoker.http.api import clock_warning
from stoker.http.contracts import (
    Absent,
    Answer,
    Body,
    Count,
    Id,
    Positive,
    Query,
    Time,
    described,
    fill,
    operation,
)
from stoker.http.request import RequestContext, Response
from stoker.model import selectors
from stoker.model.errors import EntityNotFound
from stoker.model.server import FactsSummary, Kind, Server, change_labels, with_labels
from stoker.policy import authorizer, rules, windows
from stoker.policy.authorizer import AuthorizationRequest
from stoker.servers import enrollment
from stoker.store import rows, server_lists, servers
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App

_Labels = Annotated[Any, described(dict[str, Annotated[str, Meta(max_length=63)] | None])]


class ServerChanges(Body):
    labels: _Labels | Absent = UNSET
    policy: rules.PolicyRequest | Absent | None = UNSET


class MaintenanceWindow(Answer):
    cron: str
    minutes: Count
    timezone: str


class DeploymentPolicy(Answer):
    """
    ``allow``: STACK admits the stack that owns the server, PROJECT its whole project, a list others in addition.

    ``groups`` are those of the configs that may run; null means all. ``hooks`` are those that the agent may fetch for a
    run; null means NONE with ``groups``, else the site's default.
    """

    allow: rules.Allow
    groups: list[str] | None
    hooks: rules.Hooks | None
    max_concurrent_runs: Positive
    maintenance_windows: list[MaintenanceWindow]


class WindowState(Answer):
    """Whether runs may begin now, and the time when that changes."""

    open: bool
    changes_at: Time | None


Status = Literal["ONLINE", "OFFLINE", "ENROLLING", "NEVER_SEEN", "PENDING_APPROVAL", "LEFT"]


class ShownServer(Answer):
    id: Id
    name: str
    self_named: Annotated[bool, Meta(description="Whether the machine chose the name, so that no stack may use it")]
    kind: Kind
    status: Status
    last_seen: Time | None
    created_at: Time
    agent_version: str | None
    agent_outdated: Annotated[bool, Meta(description="Whether the agent has another version than this Stoker")]
    hooks: list[str]
    hostname: str | None
    os: Annotated[str | None, Meta(description="Name and version; null: the agent has sent no facts")]
    address: Annotated[str | None, Meta(description="The address with which the server reaches other networks")]
    problem: Annotated[str | None, Meta(description="Why the agent can start no run, such as a full disk")]
    reported_at: Annotated[Time | None, Meta(description="When the facts last changed")] = field(name="facts_at")
    stack_id: str | None
    resource_name: str | None
    labels: dict[str, str]
    policy: Annotated[DeploymentPolicy, Meta(description="The server's own policy, or the site's")]
    policy_source: Literal["server", "site"]
    window: WindowState
    denial: Annotated[
        str | Absent | None,
        Meta(description="Why the policy refuses a config of the query's group, or null. Only in lists with a group"),
    ] = UNSET
    facts: (
        Annotated[dict[str, Any], Meta(description="What the agent reports, and the server's labels")] | Absent | None
    ) = UNSET


#: Names in one query, which is a line of at most a few kB.
_MOST_NAMES = 1000


class ServerFilter(Query):
    selector: Annotated[
        str | None, Meta(description="A condition over labels and facts, such as tier=web and os.family=debian")
    ] = None
    labels: Annotated[str | None, Meta(description="Another selector, such as tier=web,zone=a")] = None
    name: Annotated[
        tuple[str, ...],
        Meta(max_length=_MOST_NAMES, description="A name, an id, or a pattern such as web*; can be repeated"),
    ] = ()
    status: Annotated[tuple[Status, ...], Meta(description="One of these statuses; can be repeated")] = ()
    agent_outdated: Annotated[bool | None, Meta(description="As in a server")] = None


class ServerQuery(ServerFilter):
    group: Annotated[
        str | None, Meta(description="Adds to each server why its policy refuses a config of this group, if it does")
    ] = None
    sort: Annotated[
        server_lists.Order | None, Meta(description="The order, descending with a minus. Default: by age")
    ] = None
    limit: Annotated[Positive | None, Meta(description="The maximum number of servers; without it, all")] = None
    marker: Annotated[str | None, Meta(description="The id of a server: the list begins after it")] = None


@operation(200, {"servers": list[ShownServer]})
def index(request: RequestContext, tx: Tx, query: ServerQuery) -> Response:
    """
    List the project's servers, or those that the names and the selectors of the query select, oldest first.

    Read a long list in pages, with ``limit`` and the last server of the page as ``marker`` of the next one.
    """
    selector = _read_selector(query)
    start: Any = None
    # an unknown marker is ignored, as in the list of configs
    if query.sort is not None:
        ids = _sort(request, tx, query)
        start = ids.index(query.marker) + 1 if query.marker in ids else 0
    elif query.marker:
        start = server_lists.position(tx, request.project, query.marker)

    def read(tx: Tx, after: Any, most: int) -> list[tuple[Any, ShownServer]]:
        page: Sequence[tuple[Any, Server]]
        if query.sort is not None:
            page = _read_sorted(tx, request.project, ids, after, most)
        else:
            named = _find_ids(request, tx, query)
            if selector is not None:
                selected = server_lists.iterate_selected(tx, request.project, selector, after)
                page = list(islice((pair for pair in selected if named is None or pair[1].id in named), most))
            else:
                page = server_lists.page(tx, request.project, most, after, named)
        ids_of_page = [server.id for _, server in page]
        facts = servers.summarize_facts(tx, ids_of_page)
        if query.group is not None:
            servers.prime_governed(tx, ids_of_page)
        return [
            (position, _serialize_in_list(request, tx, server, facts.get(server.id), query.group))
            for position, server in page
        ]

    return pages.reply(request, tx, "servers", read, first=1000, start=start, limit=query.limit)


def _sort(request: RequestContext, tx: Tx, query: ServerQuery) -> list[str]:
    """Return the ids of all servers that the query selects, in its order."""
    assert query.sort is not None
    chosen = select_ids(request, tx, query)
    ids = server_lists.sort_ids(tx, request.project, query.sort, tx.now - request.app.settings.offline_after)
    return ids if chosen is None else [id for id in ids if id in chosen]


def _read_sorted(tx: Tx, project_id: str, ids: Sequence[str], start: int, most: int) -> list[tuple[int, Server]]:
    """
    Return the first ``most`` servers with the ids after ``start``, in this order, each with the number of ids up to it.

    Servers that were deleted after the list was sorted are replaced by the next ones, because fewer than ``most``
    servers end the list.
    """
    page: list[tuple[int, Server]] = []
    while len(page) < most and start < len(ids):
        part = ids[start : start + most - len(page)]
        present = {server.id: server for _, server in server_lists.page(tx, project_id, len(part), None, part)}
        page += [(number, present[id]) for number, id in enumerate(part, start + 1) if id in present]
        start += len(part)
    return page


@operation(200, {"server": ShownServer}, errors=(409,))
def show(request: RequestContext, tx: Tx) -> Response:
    """Return a server."""
    server = enrollment.find(tx, request.project, request.path["server"])
    return Response(200, {"server": _show(request, tx, server)}, clock_warning(request))


@operation(
    200,
    {"server": ShownServer},
    errors=(409,),
    example={"labels": {"tier": "web"}, "policy": {"allow": "STACK", "groups": ["script"]}},
)
def change(request: RequestContext, tx: Tx, body: ServerChanges) -> Response:
    """
    Change the labels and the policy of a server.

    Labels are changed one by one; null removes a label. The policy is replaced as a whole; null restores the site's
    default.
    """
    server = find_locked(tx, request)
    if body.labels is not UNSET:
        changed = change_labels(server.labels, body.labels)
        _audit(tx, request, server, "labels", server.labels, changed)
        servers.change(tx, server.id, labels=changed)
        server = replace(server, labels=changed)
    if body.policy is not UNSET:
        policy = None
        if body.policy is not None:
            find_id = partial(request.app.engine.env.find_project, tx)
            policy = rules.with_project_ids(rules.resolve(body.policy), find_id).to_json()
        _audit(tx, request, server, "policy", server.policy, policy)
        servers.change(tx, server.id, policy=policy)
        server = replace(server, policy=policy)
        server_runs.reevaluate(tx, request.app.work, server.id)
    return Response(200, {"server": _show(request, tx, server)}, clock_warning(request))


@operation(204, errors=(409,))
def delete(request: RequestContext, tx: Tx) -> None:
    """Remove a server. Its key becomes invalid, and its unfinished deployments fail."""
    server = enrollment.find(tx, request.project, request.path["server"])
    audit_trail.describe_server(request, server)
    server_runs.release_server(tx, request.app.work, server.id, server.name)
    enrollment.remove(tx, server)
    compute = request.app.servers.compute
    # a stack has retained the local server, so its agent still runs
    if server.kind is Kind.LOCAL and compute is not None:
        compute.delete(tx, server.id)


def list_states(app: App, project: str, tx: Tx) -> list[tuple[str, str, bool]]:
    """Return the id and the status of each server of the project, and whether its agent is outdated."""
    online_since = tx.now - app.settings.offline_after
    return server_lists.list_states(tx, project, online_since, app.servers.agent_bundle.version)


def _read_selector(query: ServerFilter) -> selectors.Selector | None:
    """Return the selector of the query, or None. Raises Invalid."""
    parts = [selectors.parse(text) for text in (query.selector, query.labels) if text is not None]
    return selectors.join(parts) if parts else None


def _find_ids(request: RequestContext, tx: Tx, query: ServerFilter) -> Collection[str] | None:
    """Return the ids of the servers that the names and the states of the query select; None: it has none of these."""
    named = set(server_lists.find_named(tx, request.project, query.name)) if query.name else None
    if not query.status and query.agent_outdated is None:
        return named
    return {
        id
        for id, status, is_outdated in list_states(request.app, request.project, tx)
        if (not query.status or status in query.status)
        and query.agent_outdated in (None, is_outdated)
        and (named is None or id in named)
    }


def select_ids(request: RequestContext, tx: Tx, query: ServerFilter) -> Collection[str] | None:
    """Return the ids of the servers that the query selects; None: all. Raises Invalid."""
    chosen, selector = _find_ids(request, tx, query), _read_selector(query)
    if selector is None:
        return chosen
    selected = {server.id for _, server in server_lists.iterate_selected(tx, request.project, selector)}
    return selected if chosen is None else selected.intersection(chosen)


def find_locked(tx: Tx, request: RequestContext) -> Server:
    """Return the server of the path, and lock its row. Raises EntityNotFound."""
    server = servers.find(tx, enrollment.find(tx, request.project, request.path["server"]).id, for_update=True)
    if server is None:
        raise EntityNotFound.of("Server", request.path["server"])
    return server


def _audit(tx: Tx, request: RequestContext, server: Server, what: str, before: Any, after: Any) -> None:
    """Record in the audit log who changed the server."""
    if before == after:
        return
    old, new = ("none" if value is None else rows.dump(value) for value in (before, after))
    audit_trail.describe_server(request, server, f"{old} → {new}")
    audit_trail.record(tx, request, f"change {what}")


def _show(request: RequestContext, tx: Tx, server: Server) -> ShownServer:
    facts = servers.find_facts(tx, server.id)
    return serialize(request, server, facts, None if facts is None else with_labels(facts.facts, server.labels))


def _serialize_in_list(
    request: RequestContext, tx: Tx, server: Server, facts: FactsSummary | None, group: str | None
) -> ShownServer:
    shown = serialize(request, server, facts, UNSET)
    if group is not None:
        run = AuthorizationRequest(
            project_id=request.project,
            server_id=server.id,
            deployment_id="",
            action="run",
            group=group,
            actor=request.user.user_name,
        )
        refused = request.app.engine.env.authorizer.check(tx, run)
        shown.denial = None if refused is None else refused.message
    return shown


def serialize(
    request: RequestContext,
    server: Server,
    summary: FactsSummary | None = None,
    facts: dict[str, Any] | UnsetType | None = None,
) -> ShownServer:
    now, own = request.app.store.clock.now(), server.policy is not None
    policy = authorizer.load_policy(rows.dump(server.policy) if own else None)
    opening = windows.find_opening(policy.windows, now)
    changes_at = opening or windows.find_closing(policy.windows, now)
    return fill(
        ShownServer,
        server,
        self_named=server.is_self_named,
        denial=UNSET,
        facts=facts,
        **{name: getattr(summary, name, None) for name in ("os", "address", "problem", "reported_at")},
        status=server.status(now, request.app.settings.offline_after),
        agent_outdated=server.agent_version not in (None, request.app.servers.agent_bundle.version),
        policy=policy.to_json(request.app.settings.deployment_policy),
        policy_source="server" if own else "site",
        window={"open": opening is None, "changes_at": None if changes_at is None else rows.heat_time(changes_at)},
    )
