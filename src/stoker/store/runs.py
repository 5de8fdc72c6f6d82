"""Queries for runs of deployments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from stoker.model.deployment import Deployment, Progress, Run
from stoker.store import rows
from stoker.store.deployments import MAY_RUN, OF_PROJECT
from stoker.store.logs import Received, load_held_bytes
from stoker.store.schema import deployments, logs, runs
from stoker.store.schema.base import Time
from stoker.store.tx import Tx

#: The number of stored runs of one deployment.
KEPT = 100

_OF_RUN = (runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
# Every report of an agent tries to add its run. For a known run, NOT EXISTS avoids the search for the last number.
_ADD = sa.text(
    "INSERT INTO runs (deployment_id, config_id, number, action, state, queued_at, ended_at, status, status_reason,"
    " requested_by, input_values, output_values, stdout_bytes, stderr_bytes)"
    " SELECT :deployment_id, :config_id,"
    " (SELECT COALESCE(MAX(number), 0) + 1 FROM runs WHERE deployment_id = :of),"
    " :action, :state, :queued_at, :ended_at, :status, :status_reason, :requested_by, :input_values, '{}', 0, 0"
    " WHERE NOT EXISTS (SELECT 1 FROM runs WHERE deployment_id = :of AND config_id = :run)"
    " ON CONFLICT (deployment_id, config_id) DO NOTHING RETURNING number"
).columns(number=sa.Integer)
_GET = sa.select(runs).where(*_OF_RUN)
_LIST = sa.select(runs).where(runs.c.deployment_id == sa.bindparam("id")).order_by(runs.c.number.desc())
_OF_SEVERAL = (
    sa.select(runs)
    .join_from(
        deployments,
        runs,
        sa.and_(runs.c.deployment_id == deployments.c.id, runs.c.config_id == deployments.c.config_id),
    )
    .where(deployments.c.id.in_(sa.bindparam("ids", expanding=True)))
)
#: Runs in a server's document, as in ``deployments.to_run`` and ``deployments.bodies``.
_IN_DOCUMENT = (
    sa.select(runs.c.deployment_id, runs.c.config_id, runs.c.sent_at)
    .join_from(
        deployments,
        runs,
        sa.and_(runs.c.deployment_id == deployments.c.id, runs.c.config_id == deployments.c.config_id),
    )
    .where(
        deployments.c.server_id == sa.bindparam("server_id"),
        deployments.c.status == "IN_PROGRESS",
        deployments.c.held_by.is_(None),
    )
)
_UNRECEIVED = _IN_DOCUMENT.where(MAY_RUN, sa.or_(runs.c.sent_at.is_(None), runs.c.state == "QUEUED"))
_UNSENT = _IN_DOCUMENT.where(OF_PROJECT, runs.c.sent_at.is_(None))
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
        state=sa.bindparam("said"), percent=sa.bindparam("share"), message=sa.bindparam("words"), **_RECORD_HEARTBEAT
    )
)
_HEARTBEAT = (
    sa.update(runs)
    .where(*_OF_RUN, runs.c.ended_at.is_(None))
    .values(
        state=sa.case((runs.c.state.in_(("QUEUED", "DELIVERED")), "RUNNING"), else_=runs.c.state),
        **_RECORD_HEARTBEAT,
    )
)
_SET_STATE = sa.update(runs).where(*_OF_RUN, runs.c.ended_at.is_(None)).values(state=sa.bindparam("said"))
_BEGAN = sa.bindparam("began", type_=Time)
_END = (
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
    )
    .returning(runs.c.stdout_bytes, runs.c.stderr_bytes, runs.c.stdout_held, runs.c.stderr_held)
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


def add(tx: Tx, deployment: Deployment, *, state: str, requested_by: str | None, inputs: str) -> None:
    """
    Insert the newest run of a deployment; do nothing if it exists. Delete the oldest runs beyond ``KEPT``.

    ``inputs`` are the input values as JSON, without secrets. ``requested_by`` is None for the action of a stack.
    """
    over = deployment.status != "IN_PROGRESS"
    row = tx.execute_fast(
        _ADD,
        {
            "deployment_id": deployment.id,
            "of": deployment.id,  # a parameter of its own, because PostgreSQL would infer two types for one parameter
            "config_id": deployment.config_id,
            "run": deployment.config_id,
            "action": deployment.action,
            "state": state,
            "queued_at": rows.to_micros(tx.now),
            "ended_at": rows.to_micros(tx.now) if over else None,
            "status": deployment.status,
            "status_reason": tx.secrets.redact_text(deployment.status_reason) if over else None,
            "requested_by": requested_by,
            "input_values": tx.secrets.encrypt(inputs),
        },
    )
    if row is not None and row[0] > KEPT:
        old = {"id": deployment.id, "last": row[0] - KEPT}
        tx.run(_FORGET_OLD_LOGS, old)
        tx.run(_FORGET_OLD_RUNS, old)


def find(tx: Tx, deployment_id: str, config_id: str) -> Run | None:
    """Return the run of a deployment with this derived config, or None."""
    row = tx.run(_GET, {"id": deployment_id, "run": config_id}).first()
    return None if row is None else _run(tx, row)


def list_all(tx: Tx, deployment_id: str) -> list[Run]:
    """Return the deployment's runs, newest first."""
    return [_run(tx, row) for row in tx.run(_LIST, {"id": deployment_id})]


def newest(tx: Tx, deployment_ids: Sequence[str]) -> dict[str, Run]:
    """Return the current run of each deployment: deployment id → run."""
    found = (row for some in rows.portions(deployment_ids) for row in tx.run(_OF_SEVERAL, {"ids": some}))
    return {row.deployment_id: _run(tx, row) for row in found}


def unsent(tx: Tx, server_id: str, project_id: str) -> Sequence[tuple[str, str]]:
    """
    Return the runs in the project's document of a server that were never sent: (deployment id, derived config id).
    """
    found = tx.run(_UNSENT, {"server_id": server_id, "project": project_id})
    return [(row.deployment_id, row.config_id) for row in found]


def unreceived(tx: Tx, server_id: str) -> Sequence[tuple[str, str, bool]]:
    """
    Return the runs in the document of a server's own agent that the agent has not acknowledged.

    Each is (deployment id, derived config id, whether it was sent).
    """
    found = tx.run(_UNRECEIVED, {"server_id": server_id})
    return [(row.deployment_id, row.config_id, row.sent_at is not None) for row in found]


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
            {"id": each.deployment_id, "run": each.config_id, "by": each.channel, "at": rows.to_micros(each.at)}
            for each in deliveries
            if each.received is received
        ]
        if values:
            tx.run(statement, values)


def record_progress(tx: Tx, deployment_id: str, config_id: str, progress: Progress, channel: str | None) -> None:
    """
    Record the progress that an agent reports.

    ``channel`` is the transport that must have delivered the run if its delivery was not recorded; None: unknown.
    """
    tx.run(
        _RECORD_PROGRESS,
        {
            "id": deployment_id,
            "run": config_id,
            "said": progress.state,
            "share": progress.percent,
            "words": tx.secrets.redact_text(progress.message),
            "now": rows.to_micros(progress.at),
            "by": channel,
        },
    )


def heartbeat(tx: Tx, deployment_id: str, config_id: str, channel: str) -> None:
    """Record a heartbeat of the run, without progress."""
    tx.run(_HEARTBEAT, {"id": deployment_id, "run": config_id, "now": rows.to_micros(tx.now), "by": channel})


def set_state(tx: Tx, deployment_id: str, config_id: str, state: str) -> None:
    """Set the state of a run that has not ended."""
    tx.run(_SET_STATE, {"id": deployment_id, "run": config_id, "said": state})


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
) -> dict[str, Received]:
    """
    Record the end of a run; return the streams whose last bytes no chunk contains yet.

    ``outputs`` are the output values as JSON; ``began`` is the start by the agent's clock. A later report replaces the
    result, but not the recorded times of start and end.
    """
    row = tx.run(
        _END,
        {
            "id": deployment_id,
            "run": config_id,
            "now": rows.to_micros(tx.now),
            "began": rows.to_micros_optional(began),
            "result": status,
            "code": code,
            "reason": tx.secrets.redact_text(reason),
            "outputs": tx.secrets.encrypt(outputs),
        },
    ).first()
    if row is None:
        return {}
    found = {"stdout": (row.stdout_bytes, row.stdout_held), "stderr": (row.stderr_bytes, row.stderr_held)}
    return {
        stream: Received(size, load_held_bytes(tx, held)) for stream, (size, held) in found.items() if held is not None
    }


def supersede(tx: Tx, deployment_id: str, config_id: str) -> None:
    """
    End a run because another run of the deployment starts. The agent's report on this run is not expected any more.
    """
    tx.run(_SUPERSEDE, {"id": deployment_id, "run": config_id, "now": rows.to_micros(tx.now)})


def forget(tx: Tx, deployment_id: str) -> None:
    """Delete all runs of a deployment."""
    tx.run(_FORGET, {"id": deployment_id})


def _run(tx: Tx, row: Any) -> Run:
    return Run(
        deployment_id=row.deployment_id,
        config_id=row.config_id,
        number=row.number,
        action=row.action,
        state=row.state,
        percent=row.percent,
        message=row.message,
        last_heartbeat_at=rows.from_micros_optional(row.last_heartbeat_at),
        queued_at=rows.from_micros(row.queued_at),
        sent_at=rows.from_micros_optional(row.sent_at),
        channel=row.channel,
        started_at=rows.from_micros_optional(row.started_at),
        ended_at=rows.from_micros_optional(row.ended_at),
        status=row.status,
        status_code=row.status_code,
        status_reason=row.status_reason,
        requested_by=row.requested_by,
        input_values=tx.secrets.load(row.input_values),
        output_values=tx.secrets.load(row.output_values),
        stdout_bytes=row.stdout_bytes,
        stderr_bytes=row.stderr_bytes,
    )
