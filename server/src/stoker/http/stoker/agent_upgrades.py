"""/v1/{project}/agent_upgrades: upgrades of the agents on servers (Stoker's own)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from stoker.http import audit_trail, pages
from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Id, Positive, Query, RequiredName, Time, fill
from stoker.http.request import RequestContext, Response
from stoker.model import canary
from stoker.model.agent_upgrade import AgentUpgrade, UpgradeStatus
from stoker.model.server import Server
from stoker.servers import enrollment
from stoker.store import agent_upgrades, servers
from stoker.store.tx import Tx


class UpgradeRequest(Body):
    """
    The first ``canary`` servers go first: a number of servers, or a percentage such as 10%.

    With ``pause_on_failure``, a failure stops the others.
    """

    servers: Annotated[list[RequiredName], Meta(min_length=1, max_length=10_000)]
    canary: int | str = 0
    pause_on_failure: bool = False


class ShownAgentUpgrade(Answer):
    """``rollout_id`` is common to the servers of one request."""

    server_id: Id
    server_name: str
    agent_version: str | None
    status: UpgradeStatus
    version: str
    from_version: str | None
    reason: str | None
    is_canary: bool
    rollout_id: Id
    requested_by: str
    requested_at: Time


class UpgradeQuery(Query):
    limit: Annotated[Positive | None, Meta(description="The maximum number of upgrades; without it, all")] = None
    marker: Annotated[str | None, Meta(description="The id of a server: the list begins after it")] = None


@operation(202, {"agent_upgrades": list[ShownAgentUpgrade]}, errors=(409,))
def create(request: RequestContext, tx: Tx, body: UpgradeRequest) -> dict[str, Any]:
    """Upgrade the agents of servers to this Stoker's version."""
    matches = [enrollment.find(tx, request.project, name) for name in body.servers]
    canary.check(body.canary or None)
    chosen = list({server.id: server for server in matches}.values())
    upgrades = request.app.servers.agent_upgrades.request(
        tx,
        chosen,
        canary=canary.count(body.canary, len(chosen)),
        pause_on_failure=body.pause_on_failure,
        requested_by=request.user.user_name,
    )
    for server, upgrade in zip(chosen, upgrades, strict=True):
        audit_trail.describe_server(request, server, f"to {upgrade.version}, {upgrade.sha256[:12]}")
        audit_trail.record(tx, request, "upgrade agent")
    return {"agent_upgrades": _serialize(upgrades, {server.id: server for server in chosen})}


@operation(200, {"agent_upgrades": list[ShownAgentUpgrade]})
def index(request: RequestContext, tx: Tx, query: UpgradeQuery) -> Response:
    """List the last upgrade of each server's agent, sorted by the servers' ids."""

    def read(tx: Tx, after: str | None, most: int) -> list[tuple[str, ShownAgentUpgrade]]:
        upgrades = agent_upgrades.page(tx, request.project, most, after or "")
        by_id = servers.find_several(tx, [upgrade.server_id for upgrade in upgrades])
        return [(shown.server_id, shown) for shown in _serialize(upgrades, by_id)]

    return pages.reply(request, tx, "agent_upgrades", read, first=1000, start=query.marker, limit=query.limit)


@operation(204, errors=(409,))
def cancel(request: RequestContext, tx: Tx) -> None:
    """Cancel the upgrade of a server's agent, if the agent has not begun it."""
    server = enrollment.find(tx, request.project, request.path["server"])
    request.app.servers.agent_upgrades.cancel(tx, server)
    audit_trail.describe_server(request, server)


def _serialize(upgrades: list[AgentUpgrade], by_id: Mapping[str, Server]) -> list[ShownAgentUpgrade]:
    return [
        fill(
            ShownAgentUpgrade,
            upgrade,
            server_name=by_id[upgrade.server_id].name,
            agent_version=by_id[upgrade.server_id].agent_version,
        )
        for upgrade in upgrades
    ]
