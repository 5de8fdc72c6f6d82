"""/signals: where a Zaqar calls when a message was posted to a queue that a result is awaited in."""

from __future__ import annotations

from stoker.http.access import Public
from stoker.http.call import Call, Reply, Route
from stoker.model.errors import EntityNotFound


def ring(call: Call) -> Reply:
    """
    Nothing of what was sent counts but that something was: the message itself is taken from the queue.

    Raises EntityNotFound for who was not told the URL.
    """
    resource_id = call.services.call_tokens.resource_of(call.path["token"])
    if resource_id is None:
        raise EntityNotFound("The resource could not be found.")
    if call.services.looking is not None:
        call.services.looking.ring(resource_id)
    return Reply(204)


ROUTES = [Route("POST", "/signals/{token}", Public(), ring)]
