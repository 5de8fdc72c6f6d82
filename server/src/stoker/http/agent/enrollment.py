"""/agent/v1/enroll: exchanges a token for a server's key."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from stoker.deployments import server_runs
from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Id, Text
from stoker.http.request import RequestContext, Response, client_address
from stoker.model.audit import Decision, Outcome
from stoker.model.errors import Unauthorized
from stoker.model.server import AgentAccess, Machine
from stoker.policy import authorizer
from stoker.servers.redemption import Redemption, TokenRefused, redeem_token
from stoker.store.tx import Tx

_LONGEST = 255


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
        instance=body.instance[:_LONGEST],
        machine=body.machine[:_LONGEST],
        hostname=body.hostname[:_LONGEST],
        cloud_id=body.cloud_id[:_LONGEST],
        key=body.key,
    )
    address = client_address(request.raw, request.app.settings)
    try:
        redemption = request.app.store.write(lambda tx: _redeem(tx, request, body.token, machine, address))
    except TokenRefused as refusal:
        decision = _refusal(refusal, machine, address)
        request.app.store.write(lambda tx: authorizer.record(tx, decision))
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
    decision = Decision(
        project_id=server.project_id,
        actor=f"the agent of {server.name}",
        action="enroll",
        outcome=Outcome.ALLOWED,
        reason=f"{machine.hostname or 'A machine'} at {address} used the enrollment {enrollment.id}",
        server_id=server.id,
    )
    authorizer.record(tx, decision)
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
