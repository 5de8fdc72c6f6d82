"""
Queries for the earlier runs of deployments, and for the output of all runs, in chunks. The current run is in the row of
its deployment, with the number of bytes of its streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from stoker.model.deployment import Deployment, LogChunk, Run
from stoker.store import rows
from stoker.store.query import change, execute, put
from stoker.store.repository import Repository
from stoker.store.sql import insert, sql
from stoker.store.tx import Tx

#: The number of runs of one deployment that are kept, with the current one.
KEPT = 100

_RUNS = Repository(Run, "runs", key=("deployment_id", "config_id"))
_list_earlier: Callable[[Tx, str], list[Run]] = _RUNS.lister("deployment_id = :deployment_id ORDER BY number DESC")
#: Delete the earlier runs of a deployment.
forget: Callable[[Tx, str], None] = put("DELETE FROM runs WHERE deployment_id = :id")
_OLD = "FROM runs WHERE deployment_id = :id AND number <= :last"
_FORGET_OLD = [
    put(f"DELETE FROM logs WHERE deployment_id = :id AND config_id IN (SELECT config_id {_OLD})"),
    put(f"DELETE {_OLD}"),
]
_ENDED = "SELECT deployment_id, config_id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :most"
_PURGE_LOGS, _PURGE = (
    change(f"DELETE FROM {table} WHERE (deployment_id, config_id) IN ({_ENDED})") for table in ("logs", "runs")
)


def add(tx: Tx, ended: Run) -> None:
    """Insert a run that another one follows. Delete the oldest runs of its deployment beyond ``KEPT``."""
    _RUNS.add(tx, ended, later=True)
    if ended.number >= KEPT:
        for forget_old in _FORGET_OLD:
            forget_old(tx, ended.deployment_id, ended.number + 1 - KEPT)


def list_all(tx: Tx, deployment: Deployment) -> list[Run]:
    """Return the deployment's runs, newest first."""
    return [deployment.run, *_list_earlier(tx, deployment.id)]


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete at most ``most`` runs that ended before ``before``, with their output; return their number."""
    _PURGE_LOGS(tx, before, most)
    return _PURGE(tx, before, most)


STREAMS = ("stdout", "stderr")
#: Limits of one page. A chunk is never split, so a page of one chunk may be larger.
PAGE_CHUNKS, PAGE_BYTES = 200, 64 * 1024
_add_chunk: Callable[[Tx, str, str, str, int, bytes, datetime], None] = put(
    insert("logs", "deployment_id", "config_id", "stream", "offset", "data", "at").text
)
_drop_chunks: Callable[[Tx, str, str, str, int, int, int], None] = execute(
    'DELETE FROM logs WHERE deployment_id = :id AND config_id = :run AND stream = :of AND "offset" >= :from'
    ' AND "offset" < :to AND "offset" + length(data) > :reaching'
)
#: Delete at most a number of chunks of runs that have ended, older than a time; return the number of deleted chunks.
purge_output: Callable[[Tx, datetime, int], int] = change(
    "DELETE FROM logs WHERE seq IN (SELECT seq FROM logs WHERE at < :before AND NOT EXISTS (SELECT 1 FROM deployments"
    " WHERE deployments.id = logs.deployment_id AND deployments.config_id = logs.config_id"
    " AND deployments.ended_at IS NULL) ORDER BY at LIMIT :most)"
)
_COLUMNS = 'deployment_id, seq, config_id, stream, "offset", data, at'
_OF_RUN = "SELECT {} FROM logs WHERE deployment_id = :id AND (:any_run OR config_id = :run)"
_AFTER = _OF_RUN + " AND seq > :after ORDER BY seq LIMIT :limit"
_BEFORE = _OF_RUN + " AND seq < :before ORDER BY seq DESC LIMIT :limit"
#: Sizes are read before the data, so that no more data is read than the page contains.
_CHUNKS_AFTER, _SIZES_AFTER = sql(_AFTER.format(_COLUMNS)), sql(_AFTER.format("length(data)"))
_CHUNKS_BEFORE, _SIZES_BEFORE = sql(_BEFORE.format(_COLUMNS)), sql(_BEFORE.format("length(data)"))
_STREAM = sql(
    'SELECT "offset", data FROM logs WHERE deployment_id = :id AND config_id = :run AND stream = :of'
    ' ORDER BY "offset", seq'
)
_AFTER_EACH = (
    "SELECT {} FROM @each_pair(positions) AS of JOIN logs ON logs.deployment_id = of.key"
    " AND logs.seq > CAST(of.value AS bigint) ORDER BY logs.seq LIMIT :limit"
)
# PostgreSQL assumes that every deployment has many chunks. With a plain join, it would scan the chunks of all
# deployments.
_AFTER_EACH_LATERAL = (
    "SELECT chunk.* FROM @each_pair(positions) AS of JOIN LATERAL (SELECT {} FROM logs"
    " WHERE logs.deployment_id = of.key AND logs.seq > CAST(of.value AS bigint) ORDER BY logs.seq LIMIT :limit)"
    " AS chunk ON true ORDER BY chunk.seq LIMIT :limit"
)
_CHUNKS_AFTER_EACH = sql(_AFTER_EACH.format(_COLUMNS), postgresql=_AFTER_EACH_LATERAL.format(_COLUMNS))
_SIZES_AFTER_EACH = sql(
    _AFTER_EACH.format("seq, length(data)"), postgresql=_AFTER_EACH_LATERAL.format("seq, length(data)")
)


class OutputPage(NamedTuple):
    """A page of chunks of one deployment."""

    chunks: list[LogChunk]
    #: More chunks may exist.
    more: bool


def append_output(
    tx: Tx, deployment_id: str, config_id: str, *, stream: str, offset: int, data: bytes, at: datetime
) -> None:
    """Insert a chunk. ``offset`` is the position of its first byte in the stream."""
    _add_chunk(tx, deployment_id, config_id, stream, offset, data, at)


def drop_output(
    tx: Tx, deployment_id: str, config_id: str, stream: str, begin: int, end: int, *, reaching: int = 0
) -> None:
    """Delete the stream's chunks that begin in ``[begin, end)`` and end after ``reaching``."""
    _drop_chunks(tx, deployment_id, config_id, stream, begin, end, reaching)


def page_output(
    tx: Tx, deployment_id: str, after: int, *, before: int | None = None, run: str | None = None
) -> OutputPage:
    """
    Return the next chunks of a deployment with a ``seq`` greater than ``after``, oldest first.

    With ``before``, these are the last chunks with a smaller ``seq`` instead. ``run`` is the config of a single run.
    """
    wanted = {"id": deployment_id, "after": after, "before": before, "any_run": run is None, "run": run}
    sizes, chunks = (_SIZES_AFTER, _CHUNKS_AFTER) if before is None else (_SIZES_BEFORE, _CHUNKS_BEFORE)
    count, more = _count_fitting(tx.fetch_all(sizes, {**wanted, "limit": PAGE_CHUNKS}))
    result = [_chunk(row) for row in tx.fetch_all(chunks, {**wanted, "limit": count})] if count else []
    return OutputPage(result if before is None else result[::-1], more)


def read_output(tx: Tx, deployment_id: str, config_id: str, stream: str) -> bytes:
    """Return the stored bytes of a stream of a run, with a note in place of each gap."""
    parts: list[bytes] = []
    end = 0
    for offset, data in tx.fetch_all(_STREAM, {"id": deployment_id, "run": config_id, "of": stream}):
        if offset > end:
            parts.append(b"\n[%d bytes are not stored]\n" % (offset - end))
        parts.append(bytes(data))
        end = offset + len(data)
    return b"".join(parts)


def page_outputs(tx: Tx, after: Mapping[str, int]) -> tuple[list[tuple[str, LogChunk]], bool]:
    """
    Return the next chunks of several deployments, oldest first, as (deployment id, chunk), and whether there may be
    more.

    ``after`` maps each deployment id to the ``seq`` after which its chunks begin. A transaction that adds a chunk locks
    the deployment, so chunks of one deployment become visible in order. Chunks of several deployments do not: a reader
    may see a greater ``seq`` before a smaller one. Therefore each deployment has its own position.
    """
    positions = rows.dump(after)
    count, more = _count_fitting(tx.fetch_all(_SIZES_AFTER_EACH, {"positions": positions, "limit": PAGE_CHUNKS}))
    result = tx.fetch_all(_CHUNKS_AFTER_EACH, {"positions": positions, "limit": count}) if count else ()
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
