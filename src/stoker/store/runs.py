"""What agents say of runs before they end: progress and live output."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from stoker.model.deployment import LogChunk, Progress
from stoker.store import rows
from stoker.store.schema import logs, runs
from stoker.store.tx import Tx

_PROGRESS = sa.select(runs.c.state, runs.c.percent, runs.c.message, runs.c.at).where(
    runs.c.deployment_id == sa.bindparam("deployment_id"), runs.c.config_id == sa.bindparam("config_id")
)
_START = sa.text(
    "INSERT INTO runs (config_id, deployment_id, state, stdout_bytes, stderr_bytes, at)"
    " VALUES (:config_id, :deployment_id, 'RUNNING', 0, 0, :at) ON CONFLICT (deployment_id, config_id) DO NOTHING"
)
_SAY = (
    sa.update(runs)
    .where(runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
    .values(
        state=sa.bindparam("state"),
        percent=sa.bindparam("percent"),
        message=sa.bindparam("message"),
        at=sa.bindparam("at"),
    )
)
_SIZES = (
    sa.select(runs.c.stdout_bytes, runs.c.stderr_bytes)
    .where(runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
    .with_for_update()
)
_GROW = {
    stream: sa.update(runs)
    .where(runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
    .values({f"{stream}_bytes": sa.bindparam("size")})
    for stream in ("stdout", "stderr")
}
_ADD_LOG = sa.insert(logs)
_AFTER = (
    sa.select(logs.c.seq, logs.c.config_id, logs.c.stream, logs.c.offset, logs.c.data, logs.c.at)
    .where(logs.c.deployment_id == sa.bindparam("id"), logs.c.seq > sa.bindparam("after"))
    .order_by(logs.c.seq)
    .limit(sa.bindparam("limit"))
)
_FORGET_RUNS = sa.delete(runs).where(runs.c.deployment_id == sa.bindparam("id"))
_FORGET_LOGS = sa.delete(logs).where(logs.c.deployment_id == sa.bindparam("id"))


def start(tx: Tx, deployment_id: str, config_id: str, at: datetime) -> None:
    """A first word of the run; harmless when there was one."""
    tx.run(_START, {"config_id": config_id, "deployment_id": deployment_id, "at": rows.stamp(at)})


def say(tx: Tx, deployment_id: str, config_id: str, progress: Progress) -> None:
    tx.run(
        _SAY,
        {
            "id": deployment_id,
            "run": config_id,
            "state": progress.state,
            "percent": progress.percent,
            "message": progress.message,
            "at": rows.stamp(progress.at),
        },
    )


def progress(tx: Tx, deployment_id: str, config_id: str) -> Progress | None:
    row = tx.run(_PROGRESS, {"deployment_id": deployment_id, "config_id": config_id}).first()
    return None if row is None else Progress(row.state, row.percent, row.message, rows.moment(row.at))


def size(tx: Tx, deployment_id: str, config_id: str, stream: str) -> int:
    """Bytes of a stream received so far; held until this transaction ends, so that no byte comes in twice."""
    row = tx.run(_SIZES, {"id": deployment_id, "run": config_id}).one()
    return int(row.stdout_bytes if stream == "stdout" else row.stderr_bytes)


def append(tx: Tx, deployment_id: str, config_id: str, *, stream: str, offset: int, data: bytes, at: datetime) -> None:
    tx.run(
        _ADD_LOG,
        {
            "deployment_id": deployment_id,
            "config_id": config_id,
            "stream": stream,
            "offset": offset,
            "data": data,
            "at": rows.stamp(at),
        },
    )


def grow(tx: Tx, deployment_id: str, config_id: str, stream: str, size: int) -> None:
    tx.run(_GROW[stream], {"id": deployment_id, "run": config_id, "size": size})


def chunks(tx: Tx, deployment_id: str, after: int, limit: int) -> list[LogChunk]:
    found = tx.run(_AFTER, {"id": deployment_id, "after": after, "limit": limit})
    return [
        LogChunk(r.seq, r.config_id, r.stream, r.offset, bytes(r.data).decode(errors="replace"), rows.moment(r.at))
        for r in found
    ]


def forget(tx: Tx, deployment_id: str) -> None:
    tx.run(_FORGET_RUNS, {"id": deployment_id})
    tx.run(_FORGET_LOGS, {"id": deployment_id})
