"""/v1/{project}/software_deployments/{id}/logs: the live output of a deployment's runs (Stoker's own)."""

from __future__ import annotations

import time
from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model.deployment import LogChunk, Progress
from stoker.model.status import Status
from stoker.store import deployments, runs
from stoker.store.bell import deployment_topic

_PAGE = 200
_LONGEST_WAIT = 60


async def follow(call: Call) -> Reply:
    """What came after ``after``; with ``wait``, as soon as there is something or the run has ended."""
    after = reading.whole(call.query.get("after"), "after") or 0
    wait = min(reading.whole(call.query.get("wait"), "wait") or 0, _LONGEST_WAIT)
    until = time.monotonic() + wait
    while True:
        with call.services.waiters.register(deployment_topic(call.path["deployment_id"])) as waiter:
            found = await call.in_thread(_read, call, after)
            left = until - time.monotonic()
            if found["logs"] or found["status"] != Status.IN_PROGRESS or left <= 0:
                return Reply(200, found)
            await waiter.wait(left)


def _read(call: Call, after: int) -> dict[str, Any]:
    with call.services.store.read() as tx:
        deployment = deployments.get(tx, call.path["deployment_id"], call.project)
        chunks = runs.chunks(tx, deployment.id, after, _PAGE)
        progress = runs.progress(tx, deployment.id, deployment.config_id)
    return {
        "logs": [_chunk(each) for each in chunks],
        "next": chunks[-1].seq if chunks else after,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "progress": _progress(progress),
    }


def _chunk(chunk: LogChunk) -> dict[str, Any]:
    return {
        "seq": chunk.seq,
        "config_id": chunk.config_id,
        "stream": chunk.stream,
        "offset": chunk.offset,
        "data": chunk.data,
        "time": shapes.time(chunk.at),
    }


def _progress(progress: Progress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {
        "state": progress.state,
        "percent": progress.percent,
        "message": progress.message,
        "time": shapes.time(progress.at),
    }
