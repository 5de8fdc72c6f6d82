"""/v1/{project}/build_info and services: information about this installation."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from uuid import NAMESPACE_DNS, uuid5

from stoker.http.request_context import RequestContext, Response
from stoker.version import VERSION

_STARTED = datetime.now(UTC)


def build_info(_call: RequestContext) -> Response:
    return Response(200, {"api": {"revision": VERSION}, "engine": {"revision": VERSION}})


def services(_call: RequestContext) -> Response:
    """Return this process in the format of Heat's list of engines. A process that responds is up."""
    host = socket.gethostname()
    me = f"{host}-{os.getpid()}"
    shown = {
        "id": str(uuid5(NAMESPACE_DNS, me)),
        "binary": "stoker",
        "engine_id": str(uuid5(NAMESPACE_DNS, f"engine-{me}")),
        "host": host,
        "hostname": host,
        "topic": "engine",
        "report_interval": 60,
        "created_at": _STARTED.strftime("%Y-%m-%dT%H:%M:%S.000000"),
        "updated_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000"),
        "deleted_at": None,
        "status": "up",
    }
    return Response(200, {"services": [shown]})
