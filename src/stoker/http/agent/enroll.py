"""/agent/v1/enroll: a token for a key."""

from __future__ import annotations

import msgspec

from stoker.deployments.documents import POLL_WAIT
from stoker.http.call import Call, Reply
from stoker.model.errors import Invalid
from stoker.servers import enrol


class Body(msgspec.Struct):
    token: str
    instance: str
    hostname: str = ""


def trade(call: Call) -> Reply:
    try:
        said = msgspec.json.decode(call.body, type=Body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"cannot read the request: {error}") from None
    if not said.instance or "\0" in said.instance + said.hostname:
        raise Invalid("instance must be a text the agent chose, and no text may hold NUL")
    keys = call.services.servers.keys
    server, key = call.services.store.write(
        lambda tx: enrol.trade(tx, keys, said.token, said.instance[:255], said.hostname[:255])
    )
    return Reply(201, {"server_id": server.id, "name": server.name, "key": key, "poll_wait": POLL_WAIT})
