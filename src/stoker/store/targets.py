"""Queries for the targets of triggers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from stoker.model.trigger import Target, TargetStatus
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import deployments, trigger_targets
from stoker.store.tx import Tx

_TARGETS = Repository(
    Target,
    trigger_targets,
    key=("trigger_id", "position"),
    fixed=("server_id", "server_name", "name", "input_values"),
)
_DELETE = statements.delete(trigger_targets, "trigger_id")
_OF_TRIGGER = _TARGETS.by("trigger_id").order_by(trigger_targets.c.position)
_STARTED = _OF_TRIGGER.where(trigger_targets.c.deployment_id.is_not(None)).limit(sa.bindparam("limit"))
_NEXT = _OF_TRIGGER.where(trigger_targets.c.status == TargetStatus.QUEUED.value).limit(sa.bindparam("limit"))
#: Without the input values, because a client that lists or follows a trigger reads all of its targets.
_STATES = _OF_TRIGGER.with_only_columns(
    *(sa.literal("{}", sa.Text) if column is trigger_targets.c.input_values else column for column in _TARGETS.columns)
)
_PAGE = _STATES.where(
    trigger_targets.c.position > sa.bindparam("after"),
    sa.or_(sa.bindparam("any_status"), trigger_targets.c.status == sa.bindparam("of_status")),
).limit(sa.bindparam("limit"))
_CHANGED = (
    _STATES.where(
        sa.tuple_(trigger_targets.c.revision, trigger_targets.c.position)
        > sa.tuple_(sa.bindparam("revision"), sa.bindparam("position"))
    )
    .order_by(None)
    .order_by(trigger_targets.c.revision, trigger_targets.c.position)
    .limit(sa.bindparam("limit"))
)
#: A transaction locks the trigger before its deployments, so no other transaction ends these in the meantime.
_TO_STOP = (
    _OF_TRIGGER.join(deployments, deployments.c.id == trigger_targets.c.deployment_id)
    .where(
        trigger_targets.c.status == TargetStatus.IN_PROGRESS.value,
        sa.or_(sa.bindparam("again"), sa.not_(deployments.c.cancelling)),
    )
    .limit(sa.bindparam("limit"))
)
_OF_DEPLOYMENT = _TARGETS.by("deployment_id")
_OF_DEPLOYMENTS = _TARGETS.select(statements.AnyOf(trigger_targets.c.deployment_id))
_DEPLOYMENT_PLACE = _TARGETS.columns.index(trigger_targets.c.deployment_id)
_DROP_QUEUE = (
    sa.update(trigger_targets)
    .where(trigger_targets.c.trigger_id == sa.bindparam("id_"), trigger_targets.c.status == TargetStatus.QUEUED.value)
    .values(
        status=TargetStatus.CANCELLED.value, status_reason=sa.bindparam("reason"), revision=sa.bindparam("revision_")
    )
)


def add(tx: Tx, new: Sequence[Target]) -> None:
    """Insert targets."""
    _TARGETS.add_all(tx, new)


def delete(tx: Tx, trigger_id: str) -> None:
    """Delete all targets of a trigger."""
    tx.execute_fast(_DELETE, {"trigger_id": trigger_id})


def of_trigger(tx: Tx, trigger_id: str) -> list[Target]:
    """Return all targets of a trigger, in their order."""
    return _TARGETS.all(tx, _OF_TRIGGER, {"trigger_id": trigger_id})


def list_started(tx: Tx, trigger_id: str, limit: int) -> list[Target]:
    """Return the first ``limit`` targets that have a deployment."""
    return _TARGETS.all(tx, _STARTED, {"trigger_id": trigger_id, "limit": limit})


def list_changed(tx: Tx, trigger_id: str, after: tuple[int, int], limit: int) -> list[Target]:
    """
    Return the next ``limit`` targets of a trigger by revision and position, without their input values.

    ``after`` are the revision and the position of the last target that was read.
    """
    revision, position = after
    values = {"trigger_id": trigger_id, "revision": revision, "position": position, "limit": limit}
    return _TARGETS.all(tx, _CHANGED, values)


def page(tx: Tx, trigger_id: str, *, after: int = -1, limit: int, status: str | None = None) -> list[Target]:
    """
    Return the next ``limit`` targets of a trigger after the position ``after``, without their input values.

    ``status`` restricts them to those with this status.
    """
    filters = {"any_status": status is None, "of_status": status}
    return _TARGETS.all(tx, _PAGE, {"trigger_id": trigger_id, "after": after, "limit": limit, **filters})


def list_queued(tx: Tx, trigger_id: str, limit: int) -> list[Target]:
    """Return the next ``limit`` queued targets."""
    return _TARGETS.all(tx, _NEXT, {"trigger_id": trigger_id, "limit": limit})


def to_stop(tx: Tx, trigger_id: str, limit: int, *, again: bool = False) -> list[Target]:
    """
    Return running targets whose runs were not cancelled yet.

    ``again`` includes those that were cancelled but whose agents have not confirmed the stop.
    """
    return _TARGETS.all(tx, _TO_STOP, {"trigger_id": trigger_id, "limit": limit, "again": again})


def of_deployment(tx: Tx, deployment_id: str) -> Target | None:
    """Return the target with this deployment, or None."""
    row = tx.preloaded.get(("target", deployment_id))
    if row is not None:
        return _TARGETS.decode(row, tx.secrets)
    return _TARGETS.first(tx, _OF_DEPLOYMENT, {"deployment_id": deployment_id})


def preload(tx: Tx, deployment_ids: Collection[str]) -> None:
    """Read the targets with these deployments at once; ``of_deployment`` takes them from memory, until it is saved."""
    for row in tx.fetch_all(_OF_DEPLOYMENTS, {"ids": rows.dump(list(deployment_ids))}):
        tx.preloaded["target", row[_DEPLOYMENT_PLACE]] = row


def save(tx: Tx, changed: Target) -> None:
    """Write the status and the deployment of a target."""
    if tx.preloaded and changed.deployment_id:
        tx.preloaded.pop(("target", changed.deployment_id), None)
    _TARGETS.put_changes(tx, changed)


def drop_queue(tx: Tx, trigger_id: str, reason: str, revision: int) -> int:
    """Cancel all queued targets of a trigger, with this revision of the trigger; return their number."""
    values = {"id_": trigger_id, "reason": tx.secrets.redact_text(reason), "revision_": revision}
    return tx.run(_DROP_QUEUE, values).rowcount
