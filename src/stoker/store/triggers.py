"""Queries for triggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from stoker.model.errors import EntityNotFound
from stoker.model.trigger import Content, Options, Target, Trigger
from stoker.store import rows, targets
from stoker.store.notifier import trigger_topic
from stoker.store.schema import triggers
from stoker.store.tx import Tx

_LIGHT = [column for column in triggers.c if column.name != "config"]
_COUNTS = ("queued", "running", "complete", "failed", "cancelled")
_CHANGING = ("options", "status", "status_reason", *_COUNTS, "ended_at")

_ADD = sa.insert(triggers)
_GET = sa.select(*_LIGHT).where(triggers.c.id == sa.bindparam("id"))
_LOCKED = _GET.with_for_update()
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
    """Insert a trigger with its content and targets. The transaction learns the values of its secret inputs."""
    secret = new.options.secret
    tx.secrets.learn(new.input_values.get(name) for name in secret)
    tx.secrets.learn(each.input_values.get(name) for each in servers for name in secret)
    tx.secrets.learn(each.get("default") for each in content.inputs if each["name"] in secret)
    tx.run(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "name": new.name,
            "action": new.action,
            "source": rows.dump(new.source),
            "stack_id": new.stack_id,
            "config": tx.secrets.dump(content),
            "input_values": tx.secrets.dump(new.input_values),
            "requested_by": new.requested_by,
            "schedule_id": new.schedule_id,
            "total": new.total,
            "created_at": rows.to_micros(new.created_at),
            **_changing_columns(tx, new),
        },
    )
    if servers:
        targets.add(tx, servers)


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Trigger:
    """
    Return the trigger. ``for_update`` locks its row, which protects its targets too.

    Raises EntityNotFound if it does not exist, or belongs to another project than ``project_id``.
    """
    found = find(tx, id, for_update=for_update)
    if found is None or project_id not in (None, found.project_id):
        raise EntityNotFound.of("Software trigger", id)
    return found


def find(tx: Tx, id: str, *, for_update: bool = False) -> Trigger | None:
    """Return the trigger with this id, of any project, or None; ``for_update`` locks its row."""
    row = tx.run(_LOCKED if for_update else _GET, {"id": id}).first()
    return None if row is None else _trigger(tx, row)


def content(tx: Tx, id: str) -> Content:
    """Return the config that the trigger runs."""
    return msgspec.json.decode(tx.secrets.decrypt(tx.run(_CONTENT, {"id": id}).scalar_one()), type=Content)


def save(tx: Tx, changed: Trigger) -> None:
    """Write the changeable columns of a trigger, and notify its topic."""
    tx.run(_SAVE, {"id_": changed.id, **_changing_columns(tx, changed)})
    tx.notify(trigger_topic(changed.id))


def delete(tx: Tx, id: str) -> None:
    """Delete the trigger and its targets, and notify its topic."""
    targets.delete(tx, id)
    tx.run(_DELETE, {"id_": id})
    tx.notify(trigger_topic(id))


def page(
    tx: Tx,
    project_id: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    status: str | None = None,
    stack_id: str | None = None,
) -> list[Trigger]:
    """
    Return at most ``limit`` triggers, newest first, that follow the trigger with the id ``marker``.

    ``status`` and ``stack_id`` restrict the triggers. Raises EntityNotFound if the project has no trigger ``marker``.
    """
    before = 2**62
    if marker is not None:
        seq = tx.run(_SEQ, {"id": marker, "project": project_id}).scalar()
        if seq is None:
            raise EntityNotFound.of("Software trigger", marker)
        before = seq
    wanted = {"any_status": status is None, "of_status": status, "any_stack": stack_id is None, "of_stack": stack_id}
    most = 2**62 if limit is None else limit
    return [
        _trigger(tx, row) for row in tx.run(_PAGE, {"project": project_id, "before": before, "limit": most, **wanted})
    ]


def oldest_beyond(tx: Tx, project_id: str, schedule_id: str, kept: int) -> list[str]:
    """Return the ids of a schedule's ended triggers, except for the newest ``kept`` ones."""
    return list(tx.run(_OF_SCHEDULE, {"project": project_id, "schedule": schedule_id, "kept": kept}).scalars())


def _changing_columns(tx: Tx, trigger: Trigger) -> dict[str, Any]:
    return {
        "options": rows.dump(trigger.options),
        "status": trigger.status,
        "status_reason": tx.secrets.redact_text(trigger.status_reason),
        **{name: getattr(trigger, name) for name in _COUNTS},
        "ended_at": rows.to_micros_optional(trigger.ended_at),
    }


def _trigger(tx: Tx, row: Any) -> Trigger:
    return Trigger(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        action=row.action,
        source=rows.load(row.source),
        stack_id=row.stack_id,
        input_values=tx.secrets.load(row.input_values),
        options=msgspec.json.decode(row.options, type=Options),
        requested_by=row.requested_by,
        schedule_id=row.schedule_id,
        status=row.status,
        status_reason=row.status_reason,
        total=row.total,
        **{name: getattr(row, name) for name in _COUNTS},
        created_at=rows.from_micros(row.created_at),
        ended_at=rows.from_micros_optional(row.ended_at),
    )
