"""/v1/{project}/software_deployments/{id}/logs: the live output of a deployment's runs (Stoker's own)."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from stoker.http import event_stream, reading
from stoker.http.call import Call, Reply
from stoker.http.event_stream import Batch, Event
from stoker.http.heat import shapes
from stoker.model.deployment import Deployment, LogChunk, Run
from stoker.model.status import Status
from stoker.store import deployments, logs, runs
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

_PAGE = 200
_LONGEST_WAIT = 60


async def follow(call: Call) -> Reply:
    """
    What came after ``after``; with ``wait``, as soon as there is something or the run has ended. Who accepts
    text/event-stream gets all of it as it comes, until the run has ended.
    """
    after = reading.whole(call.query.get("after"), "after", most=reading.LAST) or 0
    if event_stream.is_wanted(call):
        following = _Following(call, event_stream.last_id(call) or after)
        topic = deployment_topic(call.path["deployment_id"])
        return await event_stream.reply(call, lambda: (topic,), following.read)
    wait = min(reading.whole(call.query.get("wait"), "wait") or 0, _LONGEST_WAIT)
    until = time.monotonic() + wait
    while True:
        with call.services.waiters.register(deployment_topic(call.path["deployment_id"])) as waiter:
            found = await call.in_thread(_read, call, after)
            left = until - time.monotonic()
            if found["logs"] or found["status"] != Status.IN_PROGRESS or left <= 0 or call.services.waiters.closed:
                return Reply(200, found)
            await waiter.wait(left)


class _Following:
    """What one stream has said already."""

    def __init__(self, call: Call, after: int) -> None:
        self._call = call
        self._after = after
        self._progress: dict[str, Any] | None = None
        self._status: dict[str, Any] | None = None

    def read(self) -> Batch:
        """``log`` for each chunk, ``progress`` and ``status`` when they are others, ``end`` once no more can come."""
        with self._call.services.store.read() as tx:
            deployment, chunks, run = _found(tx, self._call, self._after)
            progress = _progress(run, tx.now)
        events = [Event("log", chunk_shown(each), each.seq) for each in chunks]
        self._after = chunks[-1].seq if chunks else self._after
        if progress is not None and progress != self._progress:
            events.append(Event("progress", progress))
        status = {"status": deployment.status, "status_reason": deployment.status_reason}
        if status != self._status:
            events.append(Event("status", status))
        self._progress, self._status = progress, status
        more = len(chunks) == _PAGE
        over = not more and deployment.status != Status.IN_PROGRESS and not deployment.cancelling
        return Batch([*events, Event("end", status)] if over else events, over, more)


def _read(call: Call, after: int) -> dict[str, Any]:
    with call.services.store.read() as tx:
        deployment, chunks, run = _found(tx, call, after)
        progress = _progress(run, tx.now)
    return {
        "logs": [chunk_shown(each) for each in chunks],
        "next": chunks[-1].seq if chunks else after,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "progress": progress,
    }


def _found(tx: Tx, call: Call, after: int) -> tuple[Deployment, list[LogChunk], Run | None]:
    deployment = deployments.get(tx, call.path["deployment_id"], call.project)
    chunks = logs.chunks(tx, deployment.id, after, _PAGE)
    return deployment, chunks, runs.find(tx, deployment.id, deployment.config_id)


def chunk_shown(chunk: LogChunk) -> dict[str, Any]:
    """``offset`` and ``size`` count bytes: where the next one of its stream begins later, some were cut."""
    return {
        "seq": chunk.seq,
        "config_id": chunk.config_id,
        "stream": chunk.stream,
        "offset": chunk.offset,
        "size": chunk.size,
        "data": chunk.data,
        "time": shapes.time(chunk.at),
    }


def _progress(run: Run | None, now: datetime) -> dict[str, Any] | None:
    """What its agent said last; None before that. SILENT when that was too long ago."""
    if run is None or run.heard_at is None:
        return None
    return {
        "state": run.state_at(now),
        "percent": run.percent,
        "message": run.message,
        "time": shapes.time(run.heard_at),
    }
