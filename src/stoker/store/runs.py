"""Runs of deployments, from when they were asked for to what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from stoker.model.deployment import Deployment, Progress, Run
from stoker.store import rows
from stoker.store.deployments import MAY_RUN, OF_PROJECT
from stoker.store.schema import deployments, logs, runs
from stoker.store.schema.base import Time
from stoker.store.tx import Tx

#: Runs of one deployment that are remembered.
KEPT = 100

_OF_RUN = (runs.c.deployment_id == sa.bindparam("id"), runs.c.config_id == sa.bindparam("run"))
# Every word of an agent's adds its run again: of one that is known, no runs are looked through for its number.
_ADD = sa.text(
    "INSERT INTO runs (deployment_id, config_id, number, action, state, queued_at, ended_at, status, status_reason,"
    " asked_by, input_values, output_values, stdout_bytes, stderr_bytes)"
    " SELECT :deployment_id, :config_id,"
    " (SELECT COALESCE(MAX(number), 0) + 1 FROM runs WHERE deployment_id = :of),"
    " :action, :state, :queued_at, :ended_at, :status, :status_reason, :asked_by, :input_values, '{}', 0, 0"
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
#: Runs that an agent which asks for this server's document now is told of first: of those that are in it, as
#: ``deployments.to_run`` and ``deployments.bodies`` have them.
_UNDELIVERED = (
    sa.select(runs.c.deployment_id, runs.c.config_id)
    .join_from(
        deployments,
        runs,
        sa.and_(runs.c.deployment_id == deployments.c.id, runs.c.config_id == deployments.c.config_id),
    )
    .where(
        deployments.c.server_id == sa.bindparam("server_id"),
        deployments.c.status == "IN_PROGRESS",
        deployments.c.withheld.is_(None),
        runs.c.delivered_at.is_(None),
    )
)
_UNDELIVERED_TO_SERVER = _UNDELIVERED.where(MAY_RUN)
_UNDELIVERED_TO_PROJECT = _UNDELIVERED.where(OF_PROJECT)
# A run may be well under way, or over, when its delivery is noted.
_DELIVER = (
    sa.update(runs)
    .where(*_OF_RUN, runs.c.delivered_at.is_(None))
    .values(
        state=sa.case((runs.c.state == "WAITING", "DELIVERED"), else_=runs.c.state),
        delivered_at=sa.bindparam("at"),
        channel=sa.bindparam("by"),
    )
)
_HEARD = {
    "heard_at": sa.bindparam("now"),
    "started_at": sa.func.coalesce(runs.c.started_at, sa.bindparam("now")),
    "delivered_at": sa.func.coalesce(runs.c.delivered_at, sa.bindparam("now")),
    "channel": sa.func.coalesce(runs.c.channel, sa.bindparam("by")),
}
_SAY = (
    sa.update(runs)
    .where(*_OF_RUN)
    .values(state=sa.bindparam("said"), percent=sa.bindparam("share"), message=sa.bindparam("words"), **_HEARD)
)
_BEAT = (
    sa.update(runs)
    .where(*_OF_RUN, runs.c.ended_at.is_(None))
    .values(
        state=sa.case((runs.c.state.in_(("WAITING", "DELIVERED")), "RUNNING"), else_=runs.c.state),
        **_HEARD,
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
            # Whatever an agent's clock says: not before it was asked for.
            sa.case((runs.c.queued_at > _BEGAN, runs.c.queued_at), else_=_BEGAN),
        ),
        ended_at=sa.func.coalesce(runs.c.ended_at, sa.bindparam("now")),
        status=sa.bindparam("result"),
        status_code=sa.bindparam("code"),
        status_reason=sa.bindparam("reason"),
        output_values=sa.bindparam("outputs"),
    )
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


def add(tx: Tx, deployment: Deployment, *, state: str, asked_by: str | None, inputs: str) -> None:
    """
    The deployment's newest run; harmless when it is known. ``inputs``: as JSON, without secrets.

    The oldest beyond KEPT are forgotten.
    """
    over = deployment.status != "IN_PROGRESS"
    row = tx.quick(
        _ADD,
        {
            "deployment_id": deployment.id,
            "of": deployment.id,  # PostgreSQL would find two types for one value
            "config_id": deployment.config_id,
            "run": deployment.config_id,
            "action": deployment.action,
            "state": state,
            "queued_at": rows.stamp(tx.now),
            "ended_at": rows.stamp(tx.now) if over else None,
            "status": deployment.status,
            "status_reason": deployment.status_reason if over else None,
            "asked_by": asked_by,
            "input_values": inputs,
        },
    )
    if row is not None and row[0] > KEPT:
        old = {"id": deployment.id, "last": row[0] - KEPT}
        tx.run(_FORGET_OLD_LOGS, old)
        tx.run(_FORGET_OLD_RUNS, old)


def find(tx: Tx, deployment_id: str, config_id: str) -> Run | None:
    row = tx.run(_GET, {"id": deployment_id, "run": config_id}).first()
    return None if row is None else _run(row)


def listed(tx: Tx, deployment_id: str) -> list[Run]:
    """Newest first."""
    return [_run(row) for row in tx.run(_LIST, {"id": deployment_id})]


def newest(tx: Tx, deployment_ids: Sequence[str]) -> dict[str, Run]:
    """Deployment id → its current run."""
    found = (row for some in rows.portions(deployment_ids) for row in tx.run(_OF_SEVERAL, {"ids": some}))
    return {row.deployment_id: _run(row) for row in found}


def undelivered(tx: Tx, server_id: str, project_id: str | None = None) -> Sequence[tuple[str, str]]:
    """
    (deployment id, derived config's id) of what this server has to run and was not told of yet; with ``project_id``
    what that project's agents have to run on it.
    """
    if project_id is None:
        found = tx.run(_UNDELIVERED_TO_SERVER, {"server_id": server_id})
    else:
        found = tx.run(_UNDELIVERED_TO_PROJECT, {"server_id": server_id, "project": project_id})
    return [(row.deployment_id, row.config_id) for row in found]


class Delivery(NamedTuple):
    deployment_id: str
    config_id: str
    channel: str
    at: datetime


def deliver(tx: Tx, told: Sequence[Delivery]) -> None:
    """An agent was told of these runs. Those that were delivered before are left as they are."""
    tx.run(
        _DELIVER,
        [
            {"id": each.deployment_id, "run": each.config_id, "by": each.channel, "at": rows.stamp(each.at)}
            for each in told
        ],
    )


def say(tx: Tx, deployment_id: str, config_id: str, progress: Progress, channel: str | None) -> None:
    """``channel``: what the run must have been delivered by, where that was not noted; None: nobody knows."""
    tx.run(
        _SAY,
        {
            "id": deployment_id,
            "run": config_id,
            "said": progress.state,
            "share": progress.percent,
            "words": progress.message,
            "now": rows.stamp(progress.at),
            "by": channel,
        },
    )


def beat(tx: Tx, deployment_id: str, config_id: str, channel: str) -> None:
    """Its agent says that it goes on, and nothing else."""
    tx.run(_BEAT, {"id": deployment_id, "run": config_id, "now": rows.stamp(tx.now), "by": channel})


def set_state(tx: Tx, deployment_id: str, config_id: str, state: str) -> None:
    """Of one that has not ended."""
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
) -> None:
    """
    ``outputs``: as JSON. What is said last holds; when it ended stays, and when it ``began``, where that is known
    already.
    """
    tx.run(
        _END,
        {
            "id": deployment_id,
            "run": config_id,
            "now": rows.stamp(tx.now),
            "began": rows.stamp_optional(began),
            "result": status,
            "code": code,
            "reason": reason,
            "outputs": outputs,
        },
    )


def supersede(tx: Tx, deployment_id: str, config_id: str) -> None:
    """Another run of the deployment begins; nobody will hear of this one."""
    tx.run(_SUPERSEDE, {"id": deployment_id, "run": config_id, "now": rows.stamp(tx.now)})


def forget(tx: Tx, deployment_id: str) -> None:
    tx.run(_FORGET, {"id": deployment_id})


def _run(row: Any) -> Run:
    return Run(
        deployment_id=row.deployment_id,
        config_id=row.config_id,
        number=row.number,
        action=row.action,
        state=row.state,
        percent=row.percent,
        message=row.message,
        heard_at=rows.moment_optional(row.heard_at),
        queued_at=rows.moment(row.queued_at),
        delivered_at=rows.moment_optional(row.delivered_at),
        channel=row.channel,
        started_at=rows.moment_optional(row.started_at),
        ended_at=rows.moment_optional(row.ended_at),
        status=row.status,
        status_code=row.status_code,
        status_reason=row.status_reason,
        asked_by=row.asked_by,
        input_values=rows.load(row.input_values),
        output_values=rows.load(row.output_values),
        stdout_bytes=row.stdout_bytes,
        stderr_bytes=row.stderr_bytes,
    )
