"""/agent/v1/upgrade: an agent reports how far its upgrade is."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import NO_NUL, Body, RequiredShortText
from stoker.http.request import RequestContext, Response
from stoker.model.agent_upgrade import UpgradeStatus


class UpgradeReport(Body):
    """``id`` is that of the offer in the agent's document."""

    id: RequiredShortText
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED", "ROLLED_BACK"]
    reason: Annotated[str, Meta(max_length=2000, pattern=NO_NUL)] | None = None
    #: The digest of the program that sends the report.
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None


@operation(204)
def record(request: RequestContext, body: UpgradeReport) -> Response:
    """Record the state of the agent's upgrade."""
    upgrades = request.app.servers.agent_upgrades
    request.app.store.write(
        lambda tx: upgrades.record(
            tx, request.server, body.id, UpgradeStatus(body.status), body.reason, sha256=body.sha256
        )
    )
    return Response(204)
