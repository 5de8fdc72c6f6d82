"""Triggers, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from stoker.model.errors import EntityNotFound
from stoker.model.trigger import Content, Options, Target, Trigger
from stoker.store import rows, targets
from stoker.store.bell import trigger_topic
from stoker.store.schema import triggers
from stoker.store.tx import Tx

_LIGHT = [column for column in triggers.c if column.name != "config"]
_COUNTS = ("queued", "running", "complete", "failed", "cancelled")
_CHANGING = ("options", "status", "status_reason", *_COUNTS, "ended_at")

_ADD = sa.insert(triggers)
_GET = sa.select(*_LIGHT).where(triggers.c.id == sa.bindparam("id"))
_HOLD = _GET.with_for_update()
_CONTENT = sa.select(triggers.c.config).where(triggers.c.id == sa.bindparam("id"))
_SAVE = (
    sa.update(triggers)
    .where(triggers.c.id == sa.bindparam("id_"))
    .values({name: sa.bindparam(name) for name in _CHANGING})
)
_DELETE = sa.delete(triggers).where(triggers.c.id == sa.bindparam("id_"))
_SEQ = sa.select(triggers.c.seq).where(
    triggers.c.id == sa.bindparam("id"), triggers.c.project_id == sa.bindparam("project")
)
_PAGE = (
    sa.select(*_LIGHT)
    .where(
        triggers.c.project_id == sa.bindparam("project"),
        triggers.c.seq < sa.bindparam("before"),
        sa.or_(sa.bindparam("any_status"), triggers.c.status == sa.bindparam("of_status")),
        sa.or_(sa.bindparam("any_stack"), triggers.c.stack_id == sa.bindparam("of_stack")),
    )
    .order_by(triggers.c.seq.desc())
    .limit(sa.bindparam("limit"))
)
_OF_SCHEDULE = (
    sa.select(triggers.c.id)
    .where(
        triggers.c.project_id == sa.bindparam("project"),
        triggers.c.schedule_id == sa.bindparam("schedule"),
        triggers.c.status != "IN_PROGRESS",
    )
    .order_by(triggers.c.seq.desc())
    .offset(sa.bindparam("kept"))
)


def add(tx: Tx, new: Trigger, content: Content, servers: Sequence[Target]) -> None:
    tx.run(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "name": new.name,
            "action": new.action,
            "source": rows.dump(new.source),
            "stack_id": new.stack_id,
            "config": rows.dump(content),
            "input_values": rows.dump(new.input_values),
            "asked_by": new.asked_by,
            "schedule_id": new.schedule_id,
            "total": new.total,
            "created_at": rows.stamp(new.created_at),
            **_changing(new),
        },
    )
    targets.add(tx, servers)


def get(tx: Tx, id: str, project_id: str | None = None, *, hold: bool = False) -> Trigger:
    """With ``hold`` nobody else changes it or any of its targets until this transaction ends. Raises EntityNotFound."""
    found = find(tx, id, hold=hold)
    if found is None or project_id not in (None, found.project_id):
        raise EntityNotFound.of("Software trigger", id)
    return found


def find(tx: Tx, id: str, *, hold: bool = False) -> Trigger | None:
    row = tx.run(_HOLD if hold else _GET, {"id": id}).first()
    return None if row is None else _trigger(row)


def content(tx: Tx, id: str) -> Content:
    return msgspec.json.decode(tx.run(_CONTENT, {"id": id}).scalar_one(), type=Content)


def save(tx: Tx, changed: Trigger) -> None:
    tx.run(_SAVE, {"id_": changed.id, **_changing(changed)})
    tx.ring(trigger_topic(changed.id))


def delete(tx: Tx, id: str) -> None:
    targets.delete(tx, id)
    tx.run(_DELETE, {"id_": id})
    tx.ring(trigger_topic(id))


def page(
    tx: Tx,
    project_id: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    status: str | None = None,
    stack_id: str | None = None,
) -> list[Trigger]:
    """Newest first. Raises EntityNotFound for a marker that is none."""
    before = 2**62
    if marker is not None:
        seq = tx.run(_SEQ, {"id": marker, "project": project_id}).scalar()
        if seq is None:
            raise EntityNotFound.of("Software trigger", marker)
        before = seq
    wanted = {"any_status": status is None, "of_status": status, "any_stack": stack_id is None, "of_stack": stack_id}
    most = 2**62 if limit is None else limit
    return [_trigger(row) for row in tx.run(_PAGE, {"project": project_id, "before": before, "limit": most, **wanted})]


def beyond(tx: Tx, project_id: str, schedule_id: str, kept: int) -> list[str]:
    """Ids of the ended ones of a schedule, but for so many of the newest."""
    return list(tx.run(_OF_SCHEDULE, {"project": project_id, "schedule": schedule_id, "kept": kept}).scalars())


def _changing(trigger: Trigger) -> dict[str, Any]:
    return {
        "options": rows.dump(trigger.options),
        "status": trigger.status,
        "status_reason": trigger.status_reason,
        **{name: getattr(trigger, name) for name in _COUNTS},
        "ended_at": rows.stamp_optional(trigger.ended_at),
    }


def _trigger(row: Any) -> Trigger:
    return Trigger(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        action=row.action,
        source=rows.load(row.source),
        stack_id=row.stack_id,
        input_values=rows.load(row.input_values),
        options=msgspec.json.decode(row.options, type=Options),
        asked_by=row.asked_by,
        schedule_id=row.schedule_id,
        status=row.status,
        status_reason=row.status_reason,
        total=row.total,
        **{name: getattr(row, name) for name in _COUNTS},
        created_at=rows.moment(row.created_at),
        ended_at=rows.moment_optional(row.ended_at),
    )
