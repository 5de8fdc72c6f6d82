"""Queries for the targets of triggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from stoker.model.trigger import Target, TargetStatus
from stoker.store.schema import deployments, trigger_targets
from stoker.store.tx import Tx

_ADD = sa.insert(trigger_targets)
_DELETE = sa.delete(trigger_targets).where(trigger_targets.c.trigger_id == sa.bindparam("id_"))
_OF_TRIGGER = sa.select(trigger_targets).where(trigger_targets.c.trigger_id == sa.bindparam("id"))
_TARGETS = _OF_TRIGGER.order_by(trigger_targets.c.position)
_NEXT = _TARGETS.where(trigger_targets.c.status == TargetStatus.QUEUED.value).limit(sa.bindparam("limit"))
#: Only the columns that change or are displayed, because a client that follows a trigger reads all of its targets.
_STATES = (
    sa.select(
        trigger_targets.c.position,
        trigger_targets.c.status,
        trigger_targets.c.deployment_id,
        trigger_targets.c.server_id,
        trigger_targets.c.server_name,
        trigger_targets.c.name,
        trigger_targets.c.status_reason,
    )
    .where(trigger_targets.c.trigger_id == sa.bindparam("id"))
    .order_by(trigger_targets.c.position)
)
#: A transaction locks the trigger before its deployments, so no other transaction ends these in the meantime.
_TO_STOP = (
    _TARGETS.join(deployments, deployments.c.id == trigger_targets.c.deployment_id)
    .where(
        trigger_targets.c.status == TargetStatus.IN_PROGRESS.value,
        sa.or_(sa.bindparam("again"), sa.not_(deployments.c.cancelling)),
    )
    .limit(sa.bindparam("limit"))
)
_OF_DEPLOYMENT = sa.select(trigger_targets).where(trigger_targets.c.deployment_id == sa.bindparam("deployment"))
_SAVE = (
    sa.update(trigger_targets)
    .where(trigger_targets.c.trigger_id == sa.bindparam("id_"), trigger_targets.c.position == sa.bindparam("at"))
    .values({name: sa.bindparam(f"new_{name}") for name in ("status", "status_reason", "deployment_id")})
)
_DROP_QUEUE = (
    sa.update(trigger_targets)
    .where(trigger_targets.c.trigger_id == sa.bindparam("id_"), trigger_targets.c.status == TargetStatus.QUEUED.value)
    .values(status=TargetStatus.CANCELLED.value, status_reason=sa.bindparam("reason"))
)


def add(tx: Tx, new: Sequence[Target]) -> None:
    """Insert targets."""
    tx.run(_ADD, [_columns(tx, each) for each in new])


def delete(tx: Tx, trigger_id: str) -> None:
    """Delete all targets of a trigger."""
    tx.run(_DELETE, {"id_": trigger_id})


def of_trigger(tx: Tx, trigger_id: str) -> list[Target]:
    """Return all targets of a trigger, in their order."""
    return [_target(tx, row) for row in tx.run(_TARGETS, {"id": trigger_id})]


def states(tx: Tx, trigger_id: str) -> list[Target]:
    """Return all targets of a trigger, in their order, without their input values."""
    return [
        Target(
            trigger_id=trigger_id,
            position=row.position,
            server_id=row.server_id,
            server_name=row.server_name,
            name=row.name,
            input_values={},
            status=row.status,
            status_reason=row.status_reason,
            deployment_id=row.deployment_id,
        )
        for row in tx.run(_STATES, {"id": trigger_id})
    ]


def list_queued(tx: Tx, trigger_id: str, limit: int) -> list[Target]:
    """Return the next ``limit`` queued targets."""
    return [_target(tx, row) for row in tx.run(_NEXT, {"id": trigger_id, "limit": limit})]


def to_stop(tx: Tx, trigger_id: str, limit: int, *, again: bool = False) -> list[Target]:
    """
    Return running targets whose runs were not cancelled yet.

    ``again`` includes those that were cancelled but whose agents have not confirmed the stop.
    """
    return [_target(tx, row) for row in tx.run(_TO_STOP, {"id": trigger_id, "limit": limit, "again": again})]


def of_deployment(tx: Tx, deployment_id: str) -> Target | None:
    """Return the target with this deployment, or None."""
    row = tx.run(_OF_DEPLOYMENT, {"deployment": deployment_id}).first()
    return None if row is None else _target(tx, row)


def save(tx: Tx, changed: Target) -> None:
    """Write the status and the deployment of a target."""
    tx.run(
        _SAVE,
        {
            "id_": changed.trigger_id,
            "at": changed.position,
            "new_status": changed.status,
            "new_status_reason": tx.secrets.redact_text(changed.status_reason),
            "new_deployment_id": changed.deployment_id,
        },
    )


def drop_queue(tx: Tx, trigger_id: str, reason: str) -> int:
    """Cancel all queued targets of a trigger; return their number."""
    return tx.run(_DROP_QUEUE, {"id_": trigger_id, "reason": tx.secrets.redact_text(reason)}).rowcount


def _columns(tx: Tx, target: Target) -> dict[str, Any]:
    return {
        "trigger_id": target.trigger_id,
        "position": target.position,
        "server_id": target.server_id,
        "server_name": target.server_name,
        "name": target.name,
        "input_values": tx.secrets.dump(target.input_values),
        "status": target.status,
        "status_reason": tx.secrets.redact_text(target.status_reason),
        "deployment_id": target.deployment_id,
    }


def _target(tx: Tx, row: Any) -> Target:
    return Target(
        trigger_id=row.trigger_id,
        position=row.position,
        server_id=row.server_id,
        server_name=row.server_name,
        name=row.name,
        input_values=tx.secrets.load(row.input_values),
        status=row.status,
        status_reason=row.status_reason,
        deployment_id=row.deployment_id,
    )
