"""What there is to know of this Stoker itself: /v1/{project}/build_info and services."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from uuid import NAMESPACE_DNS, uuid5

from stoker.http.call import Call, Reply
from stoker.version import VERSION

_STARTED = datetime.now(UTC)


def build_info(_call: Call) -> Reply:
    return Reply(200, {"api": {"revision": VERSION}, "engine": {"revision": VERSION}})


def services(_call: Call) -> Reply:
    """This process, as Heat lists its engines: whoever answers is up."""
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
    return Reply(200, {"services": [shown]})
