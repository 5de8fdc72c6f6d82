"""What runs write while they go on, in chunks; each run counts the bytes of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.deployment import LogChunk
from stoker.store import rows
from stoker.store.schema import logs, runs
from stoker.store.tx import Tx

_OF_RUN = (runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
_SIZES = sa.select(runs.c.stdout_bytes, runs.c.stderr_bytes).where(*_OF_RUN).with_for_update()
_GROW = {
    stream: sa.update(runs)
    .where(*_OF_RUN)
    .values({f"{stream}_bytes": sa.bindparam("size"), "heard_at": sa.bindparam("now")})
    for stream in ("stdout", "stderr")
}
_ADD_LOG = sa.insert(logs)
_DROP = sa.delete(logs).where(
    logs.c.deployment_id == sa.bindparam("id"),
    logs.c.config_id == sa.bindparam("run"),
    logs.c.stream == sa.bindparam("of"),
    logs.c.offset >= sa.bindparam("from"),
    logs.c.offset < sa.bindparam("to"),
    logs.c.offset + sa.func.length(logs.c.data) > sa.bindparam("reaching"),
)
_GOING_ON = sa.exists().where(
    runs.c.deployment_id == logs.c.deployment_id, runs.c.config_id == logs.c.config_id, runs.c.ended_at.is_(None)
)
_PURGE = sa.delete(logs).where(
    logs.c.seq.in_(
        sa.select(logs.c.seq)
        .where(logs.c.at < sa.bindparam("before"), ~_GOING_ON)
        .order_by(logs.c.at)
        .limit(sa.bindparam("most"))
    )
)
_AFTER = (
    sa.select(logs.c.seq, logs.c.config_id, logs.c.stream, logs.c.offset, logs.c.data, logs.c.at)
    .where(logs.c.deployment_id == sa.bindparam("id"), logs.c.seq > sa.bindparam("after"))
    .order_by(logs.c.seq)
    .limit(sa.bindparam("limit"))
)
_EACH = sa.bindparam("each", type_=sa.Text)
_IN_SQLITE = sa.func.json_each(_EACH).table_valued("key", "value")
_IN_POSTGRESQL = sa.func.json_each_text(sa.cast(_EACH, sa.JSON)).table_valued("key", "value")


def _after(each: sa.TableValuedAlias) -> sa.Select[Any]:
    return (
        sa.select(logs)
        .where(logs.c.deployment_id == each.c.key, logs.c.seq > sa.cast(each.c.value, sa.BigInteger))
        .order_by(logs.c.seq)
        .limit(sa.bindparam("limit"))
    )


# PostgreSQL, which thinks that all deployments have many chunks, would else look through those of everybody.
_OF_ONE = _after(_IN_POSTGRESQL).correlate(_IN_POSTGRESQL).lateral()
_AFTER_EACH = {
    "sqlite": _after(_IN_SQLITE),
    "postgresql": (
        sa.select(_OF_ONE)
        .join_from(_IN_POSTGRESQL, _OF_ONE, sa.true())
        .order_by(_OF_ONE.c.seq)
        .limit(sa.bindparam("limit"))
    ),
}
_FORGET = sa.delete(logs).where(logs.c.deployment_id == sa.bindparam("id"))


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
    tx.run(_GROW[stream], {"id": deployment_id, "run": config_id, "size": size, "now": rows.stamp(tx.now)})


def drop(tx: Tx, deployment_id: str, config_id: str, stream: str, begin: int, end: int, *, reaching: int = 0) -> None:
    """Chunks that begin between these offsets go, if they end beyond ``reaching``."""
    of = {"id": deployment_id, "run": config_id, "of": stream}
    tx.run(_DROP, {**of, "from": begin, "to": end, "reaching": reaching})


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Forget what runs that have ended wrote before then; how many chunks that were, at most ``most``."""
    return tx.run(_PURGE, {"before": rows.stamp(before), "most": most}).rowcount


def chunks(tx: Tx, deployment_id: str, after: int, limit: int) -> list[LogChunk]:
    found = tx.run(_AFTER, {"id": deployment_id, "after": after, "limit": limit})
    return [_chunk(row) for row in found]


def chunks_of_each(tx: Tx, after: Mapping[str, int], limit: int) -> list[tuple[str, LogChunk]]:
    """
    (deployment id, chunk), oldest first; ``after``: deployment id → its chunks' ``seq`` is greater.

    Whoever adds a chunk holds its deployment, so those of one appear in order. Those of several do not: a greater one
    may be seen before a smaller one, hence a place for each.
    """
    found = tx.run(_AFTER_EACH[tx.connection.dialect.name], {"each": rows.dump(after), "limit": limit})
    return [(row.deployment_id, _chunk(row)) for row in found]


def _chunk(row: Any) -> LogChunk:
    return LogChunk(
        seq=row.seq,
        config_id=row.config_id,
        stream=row.stream,
        offset=row.offset,
        size=len(row.data),
        data=bytes(row.data).decode(errors="replace"),
        at=rows.moment(row.at),
    )


def forget(tx: Tx, deployment_id: str) -> None:
    tx.run(_FORGET, {"id": deployment_id})
