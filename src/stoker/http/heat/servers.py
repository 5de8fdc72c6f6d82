"""/v1/{project}/servers: what deployments can go to (Stoker's own)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from stoker.deployments import clock, gate, leaving, policy, windows
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model import labels
from stoker.model.audit import Decision, Verdict
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.server import Server
from stoker.servers import enrol
from stoker.store import rows, servers
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    wanted = labels.selector(call.query["labels"]) if "labels" in call.query else None
    with call.services.store.read() as tx:
        found = servers.listed(tx, call.project) if wanted is None else servers.labelled(tx, call.project, wanted)
    return Reply(200, {"servers": [_shown(call, each) for each in found]})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = enrol.find(tx, call.project, call.path["server"])
    return Reply(200, {"server": _shown(call, found)})


def create(call: Call) -> Reply:
    """Enrol: the answer holds the one line that installs the agent."""
    name = reading.text(reading.body(call).get("name"), "name")
    if not name:
        raise Invalid("name is required: what the server is to be called")
    server, enrolment, token = call.services.store.write(lambda tx: enrol.enrol(tx, call.project, name))
    url = call.services.settings.public_url
    shown = {
        "token": token,
        "expires_at": shapes.time(enrolment.expires_at),
        "command": f"curl -fsSL {url}/agent/v1/install | sudo STOKER_TOKEN={token} sh",
    }
    return Reply(201, {"server": _shown(call, server), "enrolment": shown})


def change(call: Call) -> Reply:
    """Labels one by one, where null takes one away; the policy as a whole, where null leaves all to the site."""
    body = reading.body(call)
    said = policy.read(body["policy"], "policy").to_json() if body.get("policy") is not None else None

    def do(tx: Tx) -> Server:
        found = enrol.find(tx, call.project, call.path["server"])
        server = servers.find(tx, found.id, hold=True)
        if server is None:
            raise EntityNotFound.of("Server", call.path["server"])
        if "labels" in body:
            now = labels.changed(server.labels, body["labels"])
            _keep(tx, call, server, "labels", server.labels, now)
            servers.set_labels(tx, server.id, now)
            server = replace(server, labels=now)
        if "policy" in body:
            _keep(tx, call, server, "policy", server.policy, said)
            servers.set_policy(tx, server.id, said)
            server = replace(server, policy=said)
            windows.reconsider(tx, call.services.work, server.id)
        return server

    return Reply(200, {"server": _shown(call, call.services.store.write(do))})


def delete(call: Call) -> Reply:
    """Its key is worth nothing from now on, and what it had yet to run fails."""

    def do(tx: Tx) -> None:
        server = enrol.find(tx, call.project, call.path["server"])
        leaving.server_gone(tx, call.services.work, server.id, server.name)
        enrol.remove(tx, server)

    call.services.store.write(do)
    return Reply(204)


def _keep(tx: Tx, call: Call, server: Server, what: str, before: Any, after: Any) -> None:
    """Who changed it, in the audit log."""
    if before == after:
        return
    shown = " → ".join("none" if each is None else rows.dump(each) for each in (before, after))
    made = Decision(
        project_id=server.project_id,
        who=call.user.user_name,
        what=f"change {what}",
        decision=Verdict.ALLOWED,
        reason=shown,
        server_id=server.id,
    )
    gate.record(tx, made)


def _shown(call: Call, server: Server) -> dict[str, Any]:
    now, own = datetime.now(UTC), server.policy is not None
    holds = windows.kept(rows.dump(server.policy) if own else None)
    opening = clock.opens(holds.windows, now)
    return {
        "id": server.id,
        "name": server.name,
        "kind": server.kind.value,
        "status": server.status(now),
        "last_seen": shapes.time(server.last_seen),
        "created_at": shapes.time(server.created_at),
        "agent_version": server.agent_version,
        "hooks": list(server.hooks),
        "hostname": server.hostname,
        "stack_id": server.stack_id,
        "resource_name": server.resource_name,
        "labels": dict(server.labels),
        "policy": holds.to_json(call.services.settings.deployment_policy),
        "policy_source": "server" if own else "site",
        "window": {"open": opening is None, "changes_at": shapes.time(opening or clock.closes(holds.windows, now))},
    }
