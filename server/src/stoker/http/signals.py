"""
POST /signals: an external Zaqar calls it when a message is posted to a queue in which a result is expected.

``log_unknown`` serves the APIs that apply signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from stoker.http.access import QUEUE_TOKEN, Access
from stoker.http.api import Route
from stoker.http.request import RequestContext, Response
from stoker.model.errors import EntityNotFound

_log = structlog.get_logger("stoker.http")

#: The path up to the token, which is a secret.
SIGNALS = "/signals/"


def poll_now(request: RequestContext) -> Response:
    """Poll the queue now. The body is ignored; Stoker reads the message from the queue itself."""
    if request.app.result_poller is not None and request.caller.resource is not None:
        request.app.result_poller.poll_now(request.caller.resource)
    return Response(204)


@contextmanager
def log_unknown(deployment_id: str | None, run: str | None) -> Iterator[None]:
    """Log a signal to a deployment or run that does not exist. ``run``: as the signal names it."""
    try:
        yield
    except EntityNotFound as error:
        _log.info("signal.rejected", deployment_id=deployment_id, run=run, reason=error.message)
        raise


ROUTES = [Route("POST", f"{SIGNALS}{{token}}", Access(QUEUE_TOKEN), poll_now)]
