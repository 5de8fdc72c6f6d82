"""Queries for the output of runs, in chunks. Each run's row has the number of bytes of its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from stoker.model.deployment import LogChunk
from stoker.store import rows
from stoker.store.configs import SECRET_BODY
from stoker.store.schema import configs, logs, runs
from stoker.store.tx import Tx

STREAMS = ("stdout", "stderr")
#: Limits of one page. A chunk is never split, so a page of one chunk may be larger.
PAGE_CHUNKS, PAGE_BYTES = 200, 64 * 1024
_OF_RUN = (runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
_RECEIVED = {
    stream: sa.select(runs.c[f"{stream}_bytes"].label("size"), runs.c[f"{stream}_held"].label("held"), SECRET_BODY)
    .outerjoin_from(runs, configs, configs.c.id == runs.c.config_id)
    .where(*_OF_RUN)
    .with_for_update(of=runs)
    for stream in STREAMS
}
_GROW = {
    stream: sa.update(runs)
    .where(*_OF_RUN)
    .values(
        {
            f"{stream}_bytes": sa.bindparam("size"),
            f"{stream}_held": sa.bindparam("held"),
            "last_heartbeat_at": sa.bindparam("now"),
        }
    )
    for stream in STREAMS
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
_COLUMNS = (logs.c.deployment_id, logs.c.seq, logs.c.config_id, logs.c.stream, logs.c.offset, logs.c.data, logs.c.at)
#: Sizes are read before the data, so that no more data is read than the page contains.
_SIZE = sa.func.length(logs.c.data).label("size")


def _after(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return (
        sa.select(*columns)
        .where(logs.c.deployment_id == sa.bindparam("id"), logs.c.seq > sa.bindparam("after"))
        .order_by(logs.c.seq)
        .limit(sa.bindparam("limit"))
    )


_AFTER, _SIZES_AFTER = _after(*_COLUMNS), _after(_SIZE)
_POSITIONS = sa.bindparam("positions", type_=sa.Text)
_IN_SQLITE = sa.func.json_each(_POSITIONS).table_valued("key", "value")
_IN_POSTGRESQL = sa.func.json_each_text(sa.cast(_POSITIONS, sa.JSON)).table_valued("key", "value")


def _after_each(positions: sa.TableValuedAlias, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return (
        sa.select(*columns)
        .where(logs.c.deployment_id == positions.c.key, logs.c.seq > sa.cast(positions.c.value, sa.BigInteger))
        .order_by(logs.c.seq)
        .limit(sa.bindparam("limit"))
    )


def _after_each_lateral(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """
    Read the chunks of each deployment in a lateral join.

    PostgreSQL assumes that every deployment has many chunks. With a plain join, it would scan the chunks of all
    deployments.
    """
    of_one = _after_each(_IN_POSTGRESQL, *columns).correlate(_IN_POSTGRESQL).lateral()
    return (
        sa.select(of_one)
        .join_from(_IN_POSTGRESQL, of_one, sa.true())
        .order_by(of_one.c.seq)
        .limit(sa.bindparam("limit"))
    )


_AFTER_EACH = {"sqlite": _after_each(_IN_SQLITE, *_COLUMNS), "postgresql": _after_each_lateral(*_COLUMNS)}
_SIZES_AFTER_EACH = {"sqlite": _after_each(_IN_SQLITE, _SIZE), "postgresql": _after_each_lateral(logs.c.seq, _SIZE)}
_FORGET = sa.delete(logs).where(logs.c.deployment_id == sa.bindparam("id"))


class Page(NamedTuple):
    """A page of chunks of one deployment."""

    chunks: list[LogChunk]
    #: More chunks may exist.
    more: bool


class Received(NamedTuple):
    """The state of one stream: the number of received bytes, and the last ones, which no chunk contains yet."""

    size: int
    held_bytes: bytes


def lock_received(tx: Tx, deployment_id: str, config_id: str, stream: str) -> Received:
    """
    Return the state of a stream, and lock the run's row, so that no byte is stored twice.

    The transaction learns the secrets of the run's config.
    """
    streams = tx.preloaded.get(("run", deployment_id, config_id))
    if streams is not None:
        size, last_bytes = streams[stream]
        config = tx.preloaded.get(("config", config_id))
        if config is not None:
            tx.secrets.decrypt(config[0])
        return Received(int(size), load_held_bytes(tx, last_bytes))
    size, last_bytes, secret_body = tx.execute_fast(_RECEIVED[stream], {"id": deployment_id, "run": config_id})
    if secret_body is not None:
        tx.secrets.decrypt(secret_body)
    return Received(int(size), load_held_bytes(tx, last_bytes))


def load_held_bytes(tx: Tx, column: bytes | None) -> bytes:
    """Decrypt the column with a stream's bytes that no chunk contains yet."""
    return b"" if column is None else tx.secrets.decrypt_bytes(bytes(column))


def append(tx: Tx, deployment_id: str, config_id: str, *, stream: str, offset: int, data: bytes, at: datetime) -> None:
    """Insert a chunk. ``offset`` is the position of its first byte in the stream."""
    tx.put(
        _ADD_LOG,
        {
            "deployment_id": deployment_id,
            "config_id": config_id,
            "stream": stream,
            "offset": offset,
            "data": data,
            "at": rows.to_micros(at),
        },
    )


def grow(tx: Tx, deployment_id: str, config_id: str, stream: str, size: int, last_bytes: bytes = b"") -> None:
    """Set the number of received bytes of a stream; ``last_bytes`` are the last ones, which no chunk contains yet."""
    of = {"id": deployment_id, "run": config_id, "size": size, "now": rows.to_micros(tx.now)}
    stored = tx.secrets.encrypt_bytes(last_bytes) if last_bytes else None
    streams = tx.preloaded.get(("run", deployment_id, config_id))
    if streams is not None:
        streams[stream] = (size, stored)
    tx.put(_GROW[stream], {**of, "held": stored})


def drop(tx: Tx, deployment_id: str, config_id: str, stream: str, begin: int, end: int, *, reaching: int = 0) -> None:
    """Delete the stream's chunks that begin in ``[begin, end)`` and end after ``reaching``."""
    of = {"id": deployment_id, "run": config_id, "of": stream}
    tx.execute_fast(_DROP, {**of, "from": begin, "to": end, "reaching": reaching})


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete at most ``most`` chunks older than ``before`` of runs that have ended; return their number."""
    return tx.run(_PURGE, {"before": rows.to_micros(before), "most": most}).rowcount


def page(tx: Tx, deployment_id: str, after: int) -> Page:
    """Return the next chunks of a deployment with a ``seq`` greater than ``after``, oldest first."""
    wanted = {"id": deployment_id, "after": after}
    count, more = _count_fitting(tx.fetch_all(_SIZES_AFTER, {**wanted, "limit": PAGE_CHUNKS}))
    result = tx.fetch_all(_AFTER, {**wanted, "limit": count}) if count else ()
    return Page([_chunk(row) for row in result], more)


def page_of_each(tx: Tx, after: Mapping[str, int]) -> tuple[list[tuple[str, LogChunk]], bool]:
    """
    Return the next chunks of several deployments, oldest first, as (deployment id, chunk), and whether there may be
    more.

    ``after`` maps each deployment id to the ``seq`` after which its chunks begin. A transaction that adds a chunk locks
    the deployment, so chunks of one deployment become visible in order. Chunks of several deployments do not: a reader
    may see a greater ``seq`` before a smaller one. Therefore each deployment has its own position.
    """
    dialect, positions = tx.connection.dialect.name, rows.dump(after)
    sizes = tx.fetch_all(_SIZES_AFTER_EACH[dialect], {"positions": positions, "limit": PAGE_CHUNKS})
    count, more = _count_fitting(sizes)
    result = tx.fetch_all(_AFTER_EACH[dialect], {"positions": positions, "limit": count}) if count else ()
    return [(row[0], _chunk(row)) for row in result], more


def _count_fitting(sizes: Sequence[Any]) -> tuple[int, bool]:
    """Return how many chunks of these sizes fit into a page, at least one, and whether there may be more."""
    count = rows.count_fitting([row[-1] for row in sizes], PAGE_BYTES)
    return count, count < len(sizes) or count == PAGE_CHUNKS


def _chunk(row: Any) -> LogChunk:
    _, seq, config_id, stream, offset, data, at = row
    return LogChunk(
        seq=seq,
        config_id=config_id,
        stream=stream,
        offset=offset,
        size=len(data),
        data=bytes(data).decode(errors="replace"),
        at=rows.from_micros(at),
    )


def forget(tx: Tx, deployment_id: str) -> None:
    """Delete all output of a deployment."""
    tx.execute_fast(_FORGET, {"id": deployment_id})
