"""Queries for runs of deployments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from stoker.model.deployment import Deployment, Progress, Run, RunState
from stoker.model.status import Status
from stoker.store import rows, statements
from stoker.store.deployments import IS_CURRENT_RUN, OF_PROJECT
from stoker.store.logs import Received, load_held_bytes
from stoker.store.repository import Repository
from stoker.store.schema import deployments, logs, runs
from stoker.store.schema.base import Time
from stoker.store.tx import Tx

#: The number of stored runs of one deployment.
KEPT = 100

_OF_RUN = (runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
_GIVEN = (
    *("deployment_id", "config_id", "action", "mode", "state", "queued_at", "ended_at"),
    *("status", "status_reason", "requested_by", "input_values"),
)
# Every report of an agent tries to add its run. For a known run, NOT EXISTS avoids the search for the last number.
_ADD = sa.text(
    "INSERT INTO runs (deployment_id, config_id, number, action, mode, state, queued_at, ended_at, status,"
    " status_reason, requested_by, input_values, output_values, changes, stdout_bytes, stderr_bytes)"
    " SELECT :deployment_id, :config_id,"
    " (SELECT COALESCE(MAX(number), 0) + 1 FROM runs WHERE deployment_id = :of),"
    " :action, :mode, :state, :queued_at, :ended_at, :status, :status_reason, :requested_by, :input_values,"
    " '{}', '[]', 0, 0"
    " WHERE NOT EXISTS (SELECT 1 FROM runs WHERE deployment_id = :of AND config_id = :run)"
    " ON CONFLICT (deployment_id, config_id) DO NOTHING RETURNING number"
).columns(number=sa.Integer)
_ADD_FIRST = sa.insert(runs).values(
    {name: sa.bindparam(name) for name in (*_GIVEN,)}
    | {"number": 1, "output_values": "{}", "changes": "[]", "stdout_bytes": 0, "stderr_bytes": 0}
)
_RUNS = Repository(Run, runs, key=("deployment_id", "config_id"), unmapped=("stdout_held", "stderr_held"))
_LIST = _RUNS.by("deployment_id").order_by(runs.c.number.desc())
_OF_SEVERAL = (
    sa.select(*_RUNS.columns)
    .join_from(deployments, runs, IS_CURRENT_RUN)
    .where(deployments.c.id.in_(sa.bindparam("ids", expanding=True)))
)
#: Runs in a server's document, as in ``deployments.bodies``.
_UNSENT = (
    sa.select(runs.c.deployment_id, runs.c.config_id)
    .join_from(deployments, runs, IS_CURRENT_RUN)
    .where(
        deployments.c.server_id == sa.bindparam("server_id"),
        deployments.c.status == "IN_PROGRESS",
        deployments.c.held_by.is_(None),
        deployments.c.mode.is_(None),
        runs.c.sent_at.is_(None),
        OF_PROJECT,
    )
)
# A run may have started or ended before its sending or receipt is recorded.
_SEND = (
    sa.update(runs)
    .where(*_OF_RUN, runs.c.sent_at.is_(None))
    .values(sent_at=sa.bindparam("at"), channel=sa.bindparam("by"))
)
_RECEIVE = (
    sa.update(runs)
    .where(*_OF_RUN, sa.or_(runs.c.state == "QUEUED", runs.c.sent_at.is_(None)))
    .values(
        state=sa.case((runs.c.state == "QUEUED", "DELIVERED"), else_=runs.c.state),
        sent_at=sa.func.coalesce(runs.c.sent_at, sa.bindparam("at")),
        channel=sa.func.coalesce(runs.c.channel, sa.bindparam("by")),
    )
)
_RECORD_HEARTBEAT = {
    "last_heartbeat_at": sa.bindparam("now"),
    "started_at": sa.func.coalesce(runs.c.started_at, sa.bindparam("now")),
    "sent_at": sa.func.coalesce(runs.c.sent_at, sa.bindparam("now")),
    "channel": sa.func.coalesce(runs.c.channel, sa.bindparam("by")),
}
_RECORD_PROGRESS = (
    sa.update(runs)
    .where(*_OF_RUN)
    .values(
        state=sa.bindparam("new_state"),
        percent=sa.bindparam("new_percent"),
        message=sa.bindparam("new_message"),
        **_RECORD_HEARTBEAT,
    )
)
_HEARTBEAT = (
    sa.update(runs)
    .where(*_OF_RUN, runs.c.ended_at.is_(None))
    .values(
        state=sa.case((sa.or_(runs.c.state == "QUEUED", runs.c.state == "DELIVERED"), "RUNNING"), else_=runs.c.state),
        **_RECORD_HEARTBEAT,
    )
)
_SET_STATE = sa.update(runs).where(*_OF_RUN, runs.c.ended_at.is_(None)).values(state=sa.bindparam("new_state"))
_BEGAN = sa.bindparam("began", type_=Time)
_END_KNOWN = (
    sa.update(runs)
    .where(*_OF_RUN)
    .values(
        state="DONE",
        started_at=sa.func.coalesce(
            runs.c.started_at,
            # The agent's clock may be wrong: a run never starts before its request.
            sa.case((runs.c.queued_at > _BEGAN, runs.c.queued_at), else_=_BEGAN),
        ),
        ended_at=sa.func.coalesce(runs.c.ended_at, sa.bindparam("now")),
        status=sa.bindparam("result"),
        status_code=sa.bindparam("code"),
        status_reason=sa.bindparam("reason"),
        output_values=sa.bindparam("outputs"),
        changed=sa.bindparam("has_changed"),
        changes=sa.bindparam("items"),
    )
)
_STREAMS = (runs.c.stdout_bytes, runs.c.stderr_bytes, runs.c.stdout_held, runs.c.stderr_held)
_END = _END_KNOWN.returning(*_STREAMS)
_STREAMS_OF_CURRENT = (
    sa.select(runs.c.deployment_id, runs.c.config_id, *_STREAMS)
    .join_from(deployments, runs, IS_CURRENT_RUN)
    .where(statements.AnyOf(deployments.c.id))
)
_SUPERSEDE = (
    sa.update(runs)
    .where(*_OF_RUN, runs.c.ended_at.is_(None))
    .values(state="DONE", ended_at=sa.bindparam("now"), status="FAILED", status_reason="A newer run took its place")
)
_FORGET = sa.delete(runs).where(runs.c.deployment_id == sa.bindparam("id"))
_OLD = (runs.c.deployment_id == sa.bindparam("id"), runs.c.number <= sa.bindparam("last"))
_FORGET_OLD_LOGS = sa.delete(logs).where(
    logs.c.deployment_id == sa.bindparam("id"), logs.c.config_id.in_(sa.select(runs.c.config_id).where(*_OLD))
)
_FORGET_OLD_RUNS = sa.delete(runs).where(*_OLD)

#: Deployments whose earlier runs one transaction deletes: each has at most ``KEPT``.
_WINDOW = 100
_WINDOW_END = (
    sa.select(deployments.c.seq)
    .where(deployments.c.seq > sa.bindparam("after"))
    .order_by(deployments.c.seq)
    .offset(_WINDOW - 1)
    .limit(1)
)
_EARLIER = (
    sa.select(runs.c.deployment_id, runs.c.config_id)
    .join_from(deployments, runs, runs.c.deployment_id == deployments.c.id)
    .where(
        deployments.c.seq > sa.bindparam("after"),
        deployments.c.seq <= sa.bindparam("end"),
        runs.c.ended_at < sa.bindparam("before"),
        runs.c.config_id != deployments.c.config_id,
    )
)
_PURGE_LOGS = sa.delete(logs).where(sa.tuple_(logs.c.deployment_id, logs.c.config_id).in_(_EARLIER))
_PURGE = sa.delete(runs).where(sa.tuple_(runs.c.deployment_id, runs.c.config_id).in_(_EARLIER))
_LAST = 2**63 - 1


def add(
    tx: Tx,
    deployment: Deployment,
    input_values: Mapping[str, Any],
    requested_by: str | None = None,
    *,
    is_first: bool = False,
) -> None:
    """
    Insert the newest run of a deployment; do nothing if it exists. Delete the oldest runs beyond ``KEPT``.

    ``input_values`` contain no secrets. ``requested_by`` is None for the action of a stack. ``is_first``: this
    transaction has created the deployment.
    """
    if ("run", deployment.id, deployment.config_id) in tx.preloaded:
        return
    has_ended = deployment.status != Status.IN_PROGRESS
    state = RunState.PENDING_WINDOW if deployment.held_by else RunState.QUEUED
    values = {
        "deployment_id": deployment.id,
        "config_id": deployment.config_id,
        "action": deployment.action,
        "mode": deployment.mode,
        "state": (RunState.DONE if has_ended else state).value,
        "queued_at": rows.to_micros(tx.now),
        "ended_at": rows.to_micros(tx.now) if has_ended else None,
        "status": deployment.status,
        "status_reason": tx.secrets.redact_text(deployment.status_reason) if has_ended else None,
        "requested_by": requested_by,
        "input_values": tx.secrets.encrypt(rows.dump(input_values)),
    }
    if is_first:
        tx.put(_ADD_FIRST, values)
        return
    # Parameters of their own, because PostgreSQL would infer two types for one parameter.
    row = tx.execute_fast(_ADD, {**values, "of": deployment.id, "run": deployment.config_id})
    if row is not None and row[0] > KEPT:
        old = {"id": deployment.id, "last": row[0] - KEPT}
        tx.execute_fast(_FORGET_OLD_LOGS, old)
        tx.execute_fast(_FORGET_OLD_RUNS, old)


def find(tx: Tx, deployment_id: str, config_id: str) -> Run | None:
    """Return the run of a deployment with this derived config, or None."""
    return _RUNS.find(tx, deployment_id, config_id)


def list_all(tx: Tx, deployment_id: str) -> list[Run]:
    """Return the deployment's runs, newest first."""
    return _RUNS.all(tx, _LIST, {"deployment_id": deployment_id})


def newest(tx: Tx, deployment_ids: Sequence[str]) -> dict[str, Run]:
    """Return the current run of each deployment: deployment id → run."""
    return {run.deployment_id: run for run in _RUNS.several(tx, _OF_SEVERAL, deployment_ids)}


def unsent(tx: Tx, server_id: str, project_id: str) -> Sequence[tuple[str, str]]:
    """
    Return the runs in the project's document of a server that were never sent: (deployment id, derived config id).
    """
    result = tx.fetch_all(_UNSENT, {"server_id": server_id, "project": project_id})
    return [(deployment_id, config_id) for deployment_id, config_id in result]


class Delivery(NamedTuple):
    """The sending or the receipt of a run."""

    deployment_id: str
    config_id: str
    channel: str
    at: datetime
    #: The agent has acknowledged the run, or its transport has no receipts. False: the run was sent and may be lost.
    received: bool = True


def record_deliveries(tx: Tx, deliveries: Sequence[Delivery]) -> None:
    """
    Record when runs were sent or received. The first time of sending is kept; a run that has started keeps its state.
    """
    for statement, received in ((_SEND, False), (_RECEIVE, True)):
        values = [
            {"id": run.deployment_id, "run": run.config_id, "by": run.channel, "at": rows.to_micros(run.at)}
            for run in deliveries
            if run.received is received
        ]
        tx.run_many(statement, values)


def record_progress(tx: Tx, deployment_id: str, config_id: str, progress: Progress, channel: str | None) -> None:
    """
    Record the progress that an agent reports.

    ``channel`` is the transport that must have delivered the run if its delivery was not recorded; None: unknown.
    """
    tx.execute_fast(
        _RECORD_PROGRESS,
        {
            "id": deployment_id,
            "run": config_id,
            "new_state": progress.state,
            "new_percent": progress.percent,
            "new_message": tx.secrets.redact_text(progress.message),
            "now": rows.to_micros(progress.at),
            "by": channel,
        },
    )


def heartbeat(tx: Tx, deployment_id: str, config_id: str, channel: str) -> None:
    """Record a heartbeat of the run, without progress."""
    tx.execute_fast(_HEARTBEAT, {"id": deployment_id, "run": config_id, "now": rows.to_micros(tx.now), "by": channel})


def set_state(tx: Tx, deployment_id: str, config_id: str, state: str) -> None:
    """Set the state of a run that has not ended."""
    tx.execute_fast(_SET_STATE, {"id": deployment_id, "run": config_id, "new_state": state})


def end(
    tx: Tx,
    deployment_id: str,
    config_id: str,
    *,
    status: str,
    code: str | None,
    reason: str | None,
    outputs: str,
    began: datetime | None,
    changed: bool | None,
    changes: str,
) -> dict[str, Received]:
    """
    Record the end of a run; return the streams whose last bytes no chunk contains yet.

    ``outputs`` are the output values as JSON; ``began`` is the start by the agent's clock. ``changed`` and ``changes``
    (JSON) are what the run changed. A later report replaces the result, but not the recorded times of start and end.
    """
    values = {
        "id": deployment_id,
        "run": config_id,
        "now": rows.to_micros(tx.now),
        "began": rows.to_micros_optional(began),
        "result": status,
        "code": code,
        "reason": tx.secrets.redact_text(reason),
        "outputs": tx.secrets.encrypt(outputs),
        "has_changed": changed,
        "items": tx.secrets.encrypt(changes),
    }
    preloaded = tx.preloaded.get(("run", deployment_id, config_id))
    if preloaded is not None:
        tx.put(_END_KNOWN, values)
        return _unfinished(tx, preloaded)
    row = tx.execute_fast(_END, values)
    return {} if row is None else _unfinished(tx, _by_stream(row))


def preload_streams(tx: Tx, deployment_ids: Collection[str]) -> None:
    """
    Read the state of the streams of these deployments' current runs at once, for this write transaction.

    The deployments are locked, so no other transaction changes the streams.
    """
    for deployment_id, config_id, *streams in tx.fetch_all(
        _STREAMS_OF_CURRENT, {"ids": rows.dump(list(deployment_ids))}
    ):
        tx.preloaded["run", deployment_id, config_id] = _by_stream(streams)


def _by_stream(columns: Sequence[Any]) -> dict[str, tuple[int, bytes | None]]:
    stdout_bytes, stderr_bytes, stdout_held, stderr_held = columns
    return {"stdout": (stdout_bytes, stdout_held), "stderr": (stderr_bytes, stderr_held)}


def _unfinished(tx: Tx, streams: Mapping[str, tuple[int, bytes | None]]) -> dict[str, Received]:
    return {
        stream: Received(size, load_held_bytes(tx, last_bytes))
        for stream, (size, last_bytes) in streams.items()
        if last_bytes is not None
    }


def purge(tx: Tx, before: datetime, after: int) -> tuple[int, int | None]:
    """
    Delete runs that ended before ``before``, with their output, except for the newest run of each deployment.

    Considers the next deployments whose ``seq`` is greater than ``after``. Returns the number of deleted runs and the
    ``seq`` of the last of these deployments; None: there are no further ones.
    """
    end = tx.scalar(_WINDOW_END, {"after": after})
    window = {"before": rows.to_micros(before), "after": after, "end": _LAST if end is None else end}
    tx.run(_PURGE_LOGS, window)
    return tx.run(_PURGE, window).rowcount, end


def supersede(tx: Tx, deployment_id: str, config_id: str) -> None:
    """
    End a run because another run of the deployment starts. The agent's report on this run is not expected any more.
    """
    tx.execute_fast(_SUPERSEDE, {"id": deployment_id, "run": config_id, "now": rows.to_micros(tx.now)})


def forget(tx: Tx, deployment_id: str) -> None:
    """Delete all runs of a deployment."""
    tx.execute_fast(_FORGET, {"id": deployment_id})
