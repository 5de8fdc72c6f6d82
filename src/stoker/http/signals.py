"""POST /signals: an external Zaqar calls it when a message is posted to a queue in which a result is expected."""

from __future__ import annotations

from stoker.http.access import CallToken
from stoker.http.request_context import RequestContext, Response, Route

#: The path up to the token, which is a secret.
SIGNALS = "/signals/"


def poll_now(request: RequestContext) -> Response:
    """Poll the queue now. The body is ignored; Stoker reads the message from the queue itself."""
    if request.app.result_poller is not None and request.only is not None:
        request.app.result_poller.poll_now(request.only)
    return Response(204)


ROUTES = [Route("POST", f"{SIGNALS}{{token}}", CallToken(), poll_now)]
