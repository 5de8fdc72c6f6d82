"""/v1/{project}/servers: the servers of a project (Stoker's own)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from stoker.deployments import held_runs, server_removal
from stoker.http import params
from stoker.http.heat import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.model import labels
from stoker.model.audit import Decision, Outcome
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.server import Kind, Server
from stoker.policy import authorizer, holds, rules, windows
from stoker.public_url import is_loopback_url
from stoker.servers import enrollment
from stoker.store import rows, servers
from stoker.store.tx import Tx

_LOOPBACK = (
    "Only the machine that Stoker runs on can reach {url}: for other machines start `stoker serve` with --host and"
    " --tls-cert, or with --public-url (docs/operations.md)"
)


def index(request: RequestContext) -> Response:
    """List the project's servers, or those that match the label selector in ``labels``."""
    wanted = labels.selector(request.query["labels"]) if "labels" in request.query else None
    with request.app.store.read() as tx:
        found = (
            servers.list_all(tx, request.project)
            if wanted is None
            else servers.find_by_labels(tx, request.project, wanted)
        )
    return Response(200, {"servers": [_serialize(request, each) for each in found]})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = enrollment.find(tx, request.project, request.path["server"])
    return Response(200, {"server": _serialize(request, found)})


def create(request: RequestContext) -> Response:
    """Enroll a server. The response contains the command that installs the agent."""
    name = params.text(params.body(request).get("name"), "name")
    if not name:
        raise Invalid("name is required: what the server is to be called")
    server, issued, token = request.app.store.write(lambda tx: enrollment.enroll(tx, request.project, name))
    url = request.app.settings.public_url
    shown = {
        "token": token,
        "expires_at": serializers.time(issued.expires_at),
        "command": request.app.servers.agent_bundle.command(token),
        "url": url,
        "warning": _LOOPBACK.format(url=url) if is_loopback_url(url) else None,
    }
    return Response(201, {"server": _serialize(request, server), "enrollment": shown})


def change(request: RequestContext) -> Response:
    """
    Change labels and policy.

    Labels are changed one by one; null removes a label. The policy is replaced as a whole; null restores the site's
    default.
    """
    body = params.body(request)
    wanted = rules.read(body["policy"], "policy") if body.get("policy") is not None else None
    projects = request.app.engine.env.projects

    def do(tx: Tx) -> Server:
        found = enrollment.find(tx, request.project, request.path["server"])
        server = servers.find(tx, found.id, for_update=True)
        if server is None:
            raise EntityNotFound.of("Server", request.path["server"])
        if "labels" in body:
            now = labels.apply_changes(server.labels, body["labels"])
            _keep(tx, request, server, "labels", server.labels, now)
            servers.set_labels(tx, server.id, now)
            server = replace(server, labels=now)
        if "policy" in body:
            said = rules.with_project_ids(wanted, partial(projects.resolve, tx)).to_json() if wanted else None
            _keep(tx, request, server, "policy", server.policy, said)
            servers.set_policy(tx, server.id, said)
            server = replace(server, policy=said)
            held_runs.reevaluate(tx, request.app.work, server.id)
        return server

    return Response(200, {"server": _serialize(request, request.app.store.write(do))})


def delete(request: RequestContext) -> Response:
    """Remove a server. Its key becomes invalid, and its unfinished deployments fail."""

    def do(tx: Tx) -> None:
        server = enrollment.find(tx, request.project, request.path["server"])
        server_removal.release_server(tx, request.app.work, server.id, server.name)
        enrollment.remove(tx, server)
        local = request.app.servers.local
        # a stack has retained the local server, so its agent still runs
        if server.kind is Kind.LOCAL and local is not None:
            local.delete(tx, server.id)

    request.app.store.write(do)
    return Response(204)


def _keep(tx: Tx, request: RequestContext, server: Server, what: str, before: Any, after: Any) -> None:
    """Record in the audit log who changed the server."""
    if before == after:
        return
    shown = " → ".join("none" if each is None else rows.dump(each) for each in (before, after))
    made = Decision(
        project_id=server.project_id,
        actor=request.user.user_name,
        action=f"change {what}",
        outcome=Outcome.ALLOWED,
        reason=shown,
        server_id=server.id,
    )
    authorizer.record(tx, made)


def _serialize(request: RequestContext, server: Server) -> dict[str, Any]:
    now, own = datetime.now(UTC), server.policy is not None
    policy = holds.load_policy(rows.dump(server.policy) if own else None)
    opening = windows.find_opening(policy.windows, now)
    return {
        "id": server.id,
        "name": server.name,
        "kind": server.kind.value,
        "status": server.status(now, request.app.settings.offline_after),
        "last_seen": serializers.time(server.last_seen),
        "created_at": serializers.time(server.created_at),
        "agent_version": server.agent_version,
        "hooks": list(server.hooks),
        "hostname": server.hostname,
        "stack_id": server.stack_id,
        "resource_name": server.resource_name,
        "labels": dict(server.labels),
        "policy": policy.to_json(request.app.settings.deployment_policy),
        "policy_source": "server" if own else "site",
        "window": {
            "open": opening is None,
            "changes_at": serializers.time(opening or windows.find_closing(policy.windows, now)),
        },
    }
