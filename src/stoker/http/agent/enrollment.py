"""/agent/v1/enroll: exchanges a single-use token for a server's key."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Id, Text
from stoker.http.request_context import RequestContext, Response
from stoker.servers import enrollment


class EnrollmentRequest(Body):
    """``instance`` is an id that the agent generates for its machine."""

    token: str
    instance: Annotated[Text, Meta(min_length=1)]
    hostname: Text = ""


class EnrolledServer(Answer):
    """``poll_wait`` is in seconds."""

    server_id: Id
    name: str
    key: str
    poll_wait: int


@operation(201, EnrolledServer, errors=(401,))
def redeem_token(request: RequestContext, body: EnrollmentRequest) -> Response:
    """Exchange a single-use token for the server's key."""
    keys = request.app.servers.keys
    server, key = request.app.store.write(
        lambda tx: enrollment.redeem_token(tx, keys, body.token, body.instance[:255], body.hostname[:255])
    )
    return Response(
        201,
        EnrolledServer(
            server_id=server.id, name=server.name, key=key, poll_wait=request.app.settings.heartbeat_seconds
        ),
    )
