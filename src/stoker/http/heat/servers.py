"""/v1/{project}/servers: what deployments can go to (Stoker's own)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.deployments.settle import REASON
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model.errors import Invalid
from stoker.model.server import Server
from stoker.model.status import Status
from stoker.servers import enrol
from stoker.stacks import signals
from stoker.store import deployments, servers
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = servers.listed(tx, call.project)
    return Reply(200, {"servers": [_shown(each) for each in found]})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = enrol.find(tx, call.project, call.path["server"])
    return Reply(200, {"server": _shown(found)})


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
    return Reply(201, {"server": _shown(server), "enrolment": shown})


def delete(call: Call) -> Reply:
    """Its key is worth nothing from now on, and what it had yet to run fails."""

    def do(tx: Tx) -> None:
        server = enrol.find(tx, call.project, call.path["server"])
        for each in deployments.listed(tx, call.project, server.id):
            if each.status == Status.IN_PROGRESS:
                said = {REASON: f"Server {server.name} was removed"}
                signals.signal_run(tx, call.services.engine, server_id=server.id, config_id=each.config_id, values=said)
        enrol.remove(tx, server)

    call.services.store.write(do)
    return Reply(204)


def _shown(server: Server) -> dict[str, Any]:
    return {
        "id": server.id,
        "name": server.name,
        "kind": server.kind.value,
        "status": server.status(datetime.now(UTC)),
        "last_seen": shapes.time(server.last_seen),
        "created_at": shapes.time(server.created_at),
        "agent_version": server.agent_version,
        "hooks": list(server.hooks),
        "hostname": server.hostname,
        "stack_id": server.stack_id,
        "resource_name": server.resource_name,
    }
