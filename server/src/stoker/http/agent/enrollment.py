"""
/agent/v1/enroll, approval and server: a machine becomes a server, waits for its approval, and leaves.

/agent/v1/install, stoker-agent.pyz and hooks/{sha256} are what the machine downloads.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from stoker.deployments import server_runs
from stoker.http import audit_trail
from stoker.http.contracts import Answer, Body, Id, Query, Text, Whole, operation
from stoker.http.hold import hold
from stoker.http.request import RequestContext, Response, client_address, file_response
from stoker.model.artifact import ArtifactKind
from stoker.model.audit import Decision, Outcome
from stoker.model.errors import EntityNotFound, Unauthorized
from stoker.model.server import AgentAccess, Machine
from stoker.servers import enrollment
from stoker.servers.keys import key_topic
from stoker.servers.redemption import Redemption, TokenRefused, redeem_token
from stoker.store import artifacts, servers
from stoker.store.tx import Tx

_LONGEST_TEXT = 255
LONGEST_WAIT = 60
_DELETED, _LEFT = "DELETED", "LEFT"


class EnrollmentRequest(Body):
    """
    ``instance`` is a random id of the agent's installation. ``machine`` derives from confidential ids of the machine;
    ``cloud_id`` is its id in its cloud. ``key`` is the key of an earlier enrollment: with it, the machine stays the
    server that it was.
    """

    token: str
    instance: Annotated[Text, Meta(min_length=1)]
    machine: Text = ""
    hostname: Text = ""
    cloud_id: Text = ""
    key: Text = ""


class EnrolledServer(Answer):
    """``poll_wait`` is in seconds. Until the server is ``approved``, the key permits to wait for the approval only."""

    server_id: Id
    name: str
    key: str
    poll_wait: int
    approved: bool


@operation(201, EnrolledServer, errors=(401,))
def redeem(request: RequestContext, body: EnrollmentRequest) -> Response:
    """Exchange a token for the server's key."""
    machine = Machine(
        instance=body.instance[:_LONGEST_TEXT],
        machine=body.machine[:_LONGEST_TEXT],
        hostname=body.hostname[:_LONGEST_TEXT],
        cloud_id=body.cloud_id[:_LONGEST_TEXT],
        key=body.key,
    )
    address = client_address(request.raw, request.app.settings)
    try:
        redemption = request.write(lambda tx: _redeem(tx, request, body.token, machine, address))
    except TokenRefused as refusal:
        audit_trail.record_alone(request.app.store, _refusal(refusal, machine, address))
        # The answer is that for an unknown token: it must not tell whether the token was valid once.
        raise Unauthorized(refusal.message) from None
    server = redemption.server
    return Response(
        201,
        EnrolledServer(
            server_id=server.id,
            name=server.name,
            key=redemption.key,
            poll_wait=request.app.settings.heartbeat_seconds,
            approved=server.agent_access is AgentAccess.ALLOWED,
        ),
    )


def _redeem(tx: Tx, request: RequestContext, token: str, machine: Machine, address: str) -> Redemption:
    redemption = redeem_token(tx, request.app.servers.keys, token, machine)
    server, enrollment = redemption.server, redemption.enrollment
    reason = f"{machine.hostname or 'A machine'} at {address} used the enrollment {enrollment.id}"
    audit_trail.record_agent(tx, server, "enroll", reason)
    if redemption.replaces:
        server_runs.interrupt_runs(tx, request.app.work, server)
    if enrollment.reruns:
        server_runs.rerun_later(tx, request.app.work, server, enrollment.created_by)
    return redemption


def _refusal(refusal: TokenRefused, machine: Machine, address: str) -> Decision:
    enrollment = refusal.enrollment
    return Decision(
        project_id=enrollment.project_id,
        actor=f"{machine.hostname or 'a machine'} at {address}",
        action="enroll",
        outcome=Outcome.REFUSED,
        reason=f"{refusal.reason} ({enrollment.id})",
        server_id=enrollment.server_id,
    )


class ApprovalQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for the approval, at most 60")] = 0


class Approval(Answer):
    status: Literal["APPROVED", "PENDING_APPROVAL"]


@operation(200, Approval)
async def poll_approval(request: RequestContext, query: ApprovalQuery) -> Response:
    """Return whether the server is approved, at the latest after the wait."""

    async def read() -> tuple[bool, bool]:
        is_pending = await request.in_thread(_is_pending, request)
        return is_pending, not is_pending

    # A rejected server has no key any more.
    is_pending = await hold(request, key_topic(request.server), min(query.wait, LONGEST_WAIT), read)
    return Response(200, Approval(status="PENDING_APPROVAL" if is_pending else "APPROVED"))


def _is_pending(request: RequestContext) -> bool:
    with request.read() as tx:
        server = servers.find(tx, request.server)
    return server is not None and server.agent_access is AgentAccess.PENDING_APPROVAL


@operation(200, {"status": Literal["DELETED", "LEFT"]}, errors=(409,))
def leave(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """
    Revoke the key, because the agent is removed from its machine. Unfinished deployments fail.

    The server is deleted unless a stack owns or represents it.
    """
    server = servers.find(tx, request.server, for_update=True)
    if server is None:
        raise Unauthorized("This key is not valid, or has been revoked.")
    server_runs.release_server(tx, request.app.work, server.id, server.name)
    status = _DELETED if enrollment.leave(tx, server) else _LEFT
    audit_trail.record_agent(tx, server, "leave", "The agent was removed from its machine")
    return {"status": status}


@operation(200, bytes, media_type="text/x-python", has_etag=True)
def script(request: RequestContext) -> Response:
    """Return the install script of the agent."""
    return file_response(request, request.app.servers.agent_bundle.script, "text/x-python")


@operation(200, bytes, media_type="application/zip", has_etag=True)
def zipapp(request: RequestContext) -> Response:
    """Return the agent's program."""
    return file_response(request, request.app.servers.agent_bundle.program(), "application/zip")


@operation(200, bytes, media_type="application/octet-stream", has_etag=True)
def hook(request: RequestContext, tx: Tx) -> Response:
    """Return a hook of the server's project or of the site, or 304 if the client has it. Raises EntityNotFound."""
    digest = request.path["sha256"]
    server = servers.find(tx, request.server)
    project = server.project_id if server is not None else ""
    artifact = artifacts.find_by_digest(tx, ArtifactKind.HOOK, project, digest)
    if artifact is None:
        raise EntityNotFound(f"The server's project has no stored hook with the SHA-256 {digest}.")
    return file_response(request, artifacts.content(tx, artifact.id), "application/octet-stream")
