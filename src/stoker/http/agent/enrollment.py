"""/agent/v1/enroll: exchanges a single-use token for a server's key."""

from __future__ import annotations

import msgspec

from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Invalid
from stoker.servers import enrollment


class Body(msgspec.Struct):
    """The body of the request. ``instance`` is an id that the agent generates for its machine."""

    token: str
    instance: str
    hostname: str = ""


def redeem_token(request: RequestContext) -> Response:
    """Enroll a server and return its id, name and key. ``poll_wait`` is in seconds. Raises Invalid."""
    try:
        body = msgspec.json.decode(request.body, type=Body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"cannot read the request: {error}") from None
    if not body.instance or "\0" in body.instance + body.hostname:
        raise Invalid("instance must not be empty, and no text may contain NUL")
    keys = request.app.servers.keys
    server, key = request.app.store.write(
        lambda tx: enrollment.redeem_token(tx, keys, body.token, body.instance[:255], body.hostname[:255])
    )
    return Response(
        201,
        {
            "server_id": server.id,
            "name": server.name,
            "key": key,
            "poll_wait": request.app.settings.heartbeat_seconds,
        },
    )
