"""/v1/{project}/build_info and services: information about this installation."""

from __future__ import annotations

import os
import socket
from typing import Any, Literal
from uuid import NAMESPACE_DNS, uuid5

from stoker import VERSION
from stoker.http.contracts import Answer, Count, Id, operation
from stoker.http.request import RequestContext

_FORM = "%Y-%m-%dT%H:%M:%S.000000"


class Revision(Answer):
    revision: str


class EngineService(Answer):
    id: Id
    binary: str
    engine_id: Id
    host: str
    hostname: str
    topic: str
    report_interval: Count
    created_at: str
    updated_at: str
    deleted_at: str | None
    status: Literal["up", "down"]


@operation(200, {"api": Revision, "engine": Revision})
def build_info(_: RequestContext) -> dict[str, Any]:
    """Return the version of Stoker."""
    return {"api": {"revision": VERSION}, "engine": {"revision": VERSION}}


@operation(200, {"services": list[EngineService]})
def services(request: RequestContext) -> dict[str, Any]:
    """Return the process that responds, in the format of Heat's list of engines."""
    host = socket.gethostname()
    me = f"{host}-{os.getpid()}"
    service = EngineService(
        id=str(uuid5(NAMESPACE_DNS, me)),
        binary="stoker",
        engine_id=str(uuid5(NAMESPACE_DNS, f"engine-{me}")),
        host=host,
        hostname=host,
        topic="engine",
        report_interval=60,
        created_at=request.app.started_at.strftime(_FORM),
        updated_at=request.app.store.clock.now().strftime(_FORM),
        deleted_at=None,
        status="up",
    )
    return {"services": [service]}
