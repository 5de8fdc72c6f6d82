"""Configs in SQL. A config never changes once written, so it is rendered once and served as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from stoker.model.config import Config
from stoker.model.errors import EntityNotFound
from stoker.store import rows
from stoker.store.schema import configs, deployments
from stoker.store.tx import Tx

_ADD = sa.insert(configs)
_BODY = sa.select(configs.c.body, configs.c.project_id, configs.c.created_at).where(configs.c.id == sa.bindparam("id"))
_SEVERAL = sa.select(configs.c.id, configs.c.body, configs.c.project_id, configs.c.created_at).where(
    configs.c.id.in_(sa.bindparam("ids", expanding=True))
)
_EXISTS = sa.select(configs.c.project_id).where(configs.c.id == sa.bindparam("id"))
_DELETE = sa.delete(configs).where(configs.c.id == sa.bindparam("id_"))
_USED = sa.select(deployments.c.id).where(deployments.c.config_id == sa.bindparam("id")).limit(1)
_COUNT = sa.select(sa.func.count()).where(configs.c.project_id == sa.bindparam("project"))
_SEQ = sa.select(configs.c.seq).where(
    configs.c.id == sa.bindparam("id"), configs.c.project_id == sa.bindparam("project")
)
_LIST = (
    sa.select(configs.c.id, configs.c.name, configs.c.group, configs.c.created_at)
    .where(configs.c.project_id == sa.bindparam("project"), configs.c.seq < sa.bindparam("before"))
    .order_by(configs.c.seq.desc())
    .limit(sa.bindparam("limit"))
)


def render(config: Config) -> str:
    """The config as Heat shows it and as agents read it in a document."""
    return rows.dump(
        {
            "id": config.id,
            "name": config.name,
            "group": config.group,
            "creation_time": rows.heat_time(config.created_at),
            "config": config.config,
            "inputs": config.inputs,
            "outputs": config.outputs,
            "options": config.options,
        }
    )


def add(tx: Tx, new: Config) -> str:
    body = render(new)
    tx.quick(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "name": new.name,
            "group": new.group,
            "created_at": rows.stamp(new.created_at),
            "body": body,
        },
    )
    return body


def body(tx: Tx, id: str, project_id: str) -> str:
    """The rendered config. Raises EntityNotFound, also for another project's."""
    row = tx.run(_BODY, {"id": id}).first()
    if row is None or row.project_id != project_id:
        raise EntityNotFound.of("Software config", id)
    text: str = row.body
    return text


def get(tx: Tx, id: str, project_id: str) -> Config:
    row = tx.run(_BODY, {"id": id}).first()
    if row is None or row.project_id != project_id:
        raise EntityNotFound.of("Software config", id)
    return _config(row)


def look_ahead(tx: Tx, ids: Sequence[str]) -> None:
    """In a reading transaction ``find`` has those of the ids that are configs' from now on."""
    if tx.seen is None:
        return
    unknown = [id for id in ids if ("config", id) not in tx.seen]
    tx.seen |= dict.fromkeys((("config", id) for id in unknown), None)
    for some in rows.portions(unknown):
        tx.seen |= {("config", row.id): _config(row) for row in tx.run(_SEVERAL, {"ids": some})}


def find(tx: Tx, id: str) -> Config | None:
    if tx.seen is not None and ("config", id) in tx.seen:
        known: Config | None = tx.seen["config", id]
        return known
    row = tx.run(_BODY, {"id": id}).first()
    return None if row is None else _config(row)


def exists(tx: Tx, id: str, project_id: str) -> bool:
    row = tx.quick(_EXISTS, {"id": id})
    return row is not None and bool(row[0] == project_id)


def in_use(tx: Tx, id: str) -> bool:
    return tx.run(_USED, {"id": id}).first() is not None


def delete(tx: Tx, id: str) -> None:
    tx.run(_DELETE, {"id_": id})


def count(tx: Tx, project_id: str) -> int:
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def page(tx: Tx, project_id: str, *, limit: int | None, marker: str | None) -> list[dict[str, Any]]:
    """Summaries, newest first, after ``marker`` (an unknown one is ignored, as Heat does)."""
    before = tx.run(_SEQ, {"id": marker, "project": project_id}).scalar() if marker else None
    found = tx.run(
        _LIST, {"project": project_id, "before": before or 2**62, "limit": limit if limit is not None else 2**31 - 1}
    )
    return [
        {"id": r.id, "name": r.name, "group": r.group, "creation_time": rows.heat_time(rows.moment(r.created_at))}
        for r in found
    ]


def _config(row: Any) -> Config:
    said = rows.load(row.body)
    return Config(
        id=said["id"],
        project_id=row.project_id,
        name=said["name"],
        group=said["group"],
        config=said["config"],
        inputs=tuple(said["inputs"]),
        outputs=tuple(said["outputs"]),
        options=said["options"],
        created_at=rows.moment(row.created_at),
    )
