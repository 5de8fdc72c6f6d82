"""Deployments in SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound
from stoker.store import rows
from stoker.store.schema import configs, deployments, logs, servers
from stoker.store.tx import Tx

_ADD = sa.insert(deployments)
_GET = sa.select(deployments).where(deployments.c.id == sa.bindparam("id"))
_HOLD = _GET.with_for_update()
_SEVERAL = sa.select(deployments).where(deployments.c.id.in_(sa.bindparam("ids", expanding=True)))
#: Anybody may name any server id, as with Heat; a server that is known works for its own project only.
_OWNER = sa.select(servers.c.project_id).where(servers.c.id == sa.bindparam("server_id")).scalar_subquery()
MAY_RUN = sa.or_(deployments.c.project_id == sa.func.coalesce(_OWNER, deployments.c.project_id), deployments.c.admitted)
#: What a project's agents are told of: whose server it is, of what others were let in with too.
OF_PROJECT = sa.or_(
    deployments.c.project_id == sa.bindparam("project"),
    sa.and_(deployments.c.admitted, sa.bindparam("project") == _OWNER),
)
_OF_RUN = (
    sa.select(deployments)
    .where(
        deployments.c.config_id == sa.bindparam("config_id"),
        deployments.c.server_id == sa.bindparam("server_id"),
        MAY_RUN,
    )
    .order_by(deployments.c.status.desc(), deployments.c.seq)  # IN_PROGRESS before FAILED before COMPLETE
    .limit(1)
)
_IS_OF = sa.select(deployments.c.id).where(
    deployments.c.id == sa.bindparam("id"), deployments.c.server_id == sa.bindparam("server_id"), MAY_RUN
)
_UNDER_WAY = sa.select(
    deployments.c.id,
    deployments.c.config_id,
    deployments.c.status_reason,
    sa.select(logs.c.data)
    .where(logs.c.deployment_id == deployments.c.id)
    .order_by(logs.c.seq.desc())
    .limit(1)
    .scalar_subquery()
    .label("last"),
).where(deployments.c.id.in_(sa.bindparam("ids", expanding=True)), deployments.c.status == "IN_PROGRESS")
_SAVE = (
    sa.update(deployments)
    .where(deployments.c.id == sa.bindparam("id_"))
    .values(
        {
            name: sa.bindparam(name)
            for name in (
                "config_id",
                "action",
                "status",
                "status_reason",
                "input_values",
                "output_values",
                "signal_transport",
                "withheld",
                "cancelling",
                "admitted",
                "updated_at",
            )
        }
    )
)
_RELINK = (
    sa.update(deployments)
    .where(deployments.c.id == sa.bindparam("id_"))
    .values(stack_id=sa.bindparam("stack"), resource_id=sa.bindparam("resource"))
)
_DELETE = sa.delete(deployments).where(deployments.c.id == sa.bindparam("id_"))
_COUNT = sa.select(sa.func.count()).where(deployments.c.project_id == sa.bindparam("project"))
_LIST = sa.select(deployments).where(deployments.c.project_id == sa.bindparam("project")).order_by(deployments.c.seq)
_LIST_SERVER = _LIST.where(deployments.c.server_id == sa.bindparam("server_id"))
_ANY_BODIES = (
    sa.select(configs.c.body, configs.c.name)
    .join_from(deployments, configs, deployments.c.config_id == configs.c.id)
    .order_by(deployments.c.seq)
)
_SHOWN = deployments.c.withheld.is_(None)
_BODIES_OF_SEVERAL = (
    _ANY_BODIES.add_columns(
        deployments.c.server_id,
        sa.case((deployments.c.admitted, servers.c.project_id), else_=deployments.c.project_id).label("project_id"),
    )
    .outerjoin_from(deployments, servers, servers.c.id == deployments.c.server_id)
    .where(deployments.c.server_id.in_(sa.bindparam("ids", expanding=True)), _SHOWN)
)
_BODIES = _ANY_BODIES.where(deployments.c.server_id == sa.bindparam("server_id"))
_BODIES_OF_PROJECT = _BODIES.where(OF_PROJECT, _SHOWN)
_TO_RUN = _BODIES.add_columns(deployments.c.id, deployments.c.cancelling).where(
    sa.or_(
        deployments.c.cancelling,
        sa.and_(sa.or_(deployments.c.status == "IN_PROGRESS", deployments.c.signal_transport == "NO_SIGNAL"), _SHOWN),
    ),
    MAY_RUN,
)
#: Under this a reading transaction keeps the servers whose bodies may be asked for.
_EXPECTED = ("bodies", "expected")


def add(tx: Tx, new: Deployment) -> None:
    tx.quick(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "server_id": new.server_id,
            "config_id": new.config_id,
            "action": new.action,
            "status": new.status,
            "status_reason": new.status_reason,
            "input_values": rows.dump(new.input_values),
            "output_values": rows.dump(new.output_values),
            "signal_transport": new.signal_transport,
            "resource_id": new.resource_id,
            "stack_id": new.stack_id,
            "trigger_id": new.trigger_id,
            "withheld": new.withheld,
            "cancelling": new.cancelling,
            "admitted": new.admitted,
            "created_at": rows.stamp(new.created_at),
            "updated_at": rows.stamp_optional(new.updated_at),
        },
    )


def get(tx: Tx, id: str, project_id: str | None = None, *, hold: bool = False) -> Deployment:
    """With ``hold`` nobody else changes it until this transaction ends. Raises EntityNotFound."""
    found = find(tx, id, hold=hold)
    if found is None or project_id not in (None, found.project_id):
        raise EntityNotFound.of("Software deployment", id)
    return found


def look_ahead(tx: Tx, ids: Sequence[str]) -> list[Deployment]:
    """Those of the ids that are deployments' and not known yet; when reading, ``find`` has them from now on."""
    if tx.seen is not None:
        ids = [id for id in ids if ("deployment", id) not in tx.seen]
    found = [_deployment(row) for some in rows.portions(ids) for row in tx.run(_SEVERAL, {"ids": some})]
    if tx.seen is not None:
        tx.seen |= dict.fromkeys((("deployment", id) for id in ids), None)
        tx.seen |= {("deployment", each.id): each for each in found}
    return found


def find(tx: Tx, id: str, *, hold: bool = False) -> Deployment | None:
    if tx.seen is not None and ("deployment", id) in tx.seen:
        known: Deployment | None = tx.seen["deployment", id]
        return known
    row = tx.run(_HOLD if hold else _GET, {"id": id}).first()
    return None if row is None else _deployment(row)


def of_run(tx: Tx, server_id: str, config_id: str) -> Deployment | None:
    """The deployment whose run on this server that config is; one still under way before one that has ended."""
    row = tx.run(_OF_RUN, {"server_id": server_id, "config_id": config_id}).first()
    return None if row is None else _deployment(row)


def is_of(tx: Tx, id: str, server_id: str) -> bool:
    """Whether that server has it to run: then its agent may say what came of it."""
    return tx.run(_IS_OF, {"id": id, "server_id": server_id}).first() is not None


def under_way(tx: Tx, ids: Sequence[str]) -> dict[str, tuple[str | None, str | None]]:
    """Of those still IN_PROGRESS: deployment id → (reason, last line of output)."""
    found = tx.run(_UNDER_WAY, {"ids": list(ids)}) if ids else ()
    return {row.id: (row.status_reason, _last_line(row.last)) for row in found}


def save(tx: Tx, changed: Deployment) -> None:
    tx.run(
        _SAVE,
        {
            "id_": changed.id,
            "config_id": changed.config_id,
            "action": changed.action,
            "status": changed.status,
            "status_reason": changed.status_reason,
            "input_values": rows.dump(changed.input_values),
            "output_values": rows.dump(changed.output_values),
            "signal_transport": changed.signal_transport,
            "withheld": changed.withheld,
            "cancelling": changed.cancelling,
            "admitted": changed.admitted,
            "updated_at": rows.stamp_optional(changed.updated_at),
        },
    )


def relink(tx: Tx, id: str, stack_id: str | None, resource_id: str | None) -> None:
    """From now on it belongs to that resource, or to none."""
    tx.run(_RELINK, {"id_": id, "stack": stack_id, "resource": resource_id})


def delete(tx: Tx, id: str) -> None:
    tx.run(_DELETE, {"id_": id})


def count(tx: Tx, project_id: str) -> int:
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def listed(tx: Tx, project_id: str, server_id: str | None = None) -> list[Deployment]:
    """Oldest first."""
    if server_id:
        found = tx.run(_LIST_SERVER, {"project": project_id, "server_id": server_id})
    else:
        found = tx.run(_LIST, {"project": project_id})
    return [_deployment(row) for row in found]


def bodies(tx: Tx, server_id: str, project_id: str) -> list[str]:
    """The rendered derived configs of a server, in Heat's order: by name, then by age."""
    ahead = _bodies_ahead(tx, server_id)
    if ahead is not None:
        return [r.body for r in _by_name([row for row in ahead if row.project_id == project_id])]
    return [r.body for r in _by_name(tx.run(_BODIES_OF_PROJECT, {"server_id": server_id, "project": project_id}).all())]


def expect(tx: Tx, server_ids: Collection[str]) -> None:
    """When reading: the first of these that ``bodies`` is asked for has it read those of all."""
    if tx.seen is not None:
        tx.seen.setdefault(_EXPECTED, set()).update(server_ids)


def _bodies_ahead(tx: Tx, server_id: str) -> list[Any] | None:
    if tx.seen is None:
        return None
    expected = tx.seen.get(_EXPECTED, ())
    if server_id in expected:
        del tx.seen[_EXPECTED]
        tx.seen |= {("bodies", id): [] for id in expected}
        for some in rows.portions(expected):
            for row in tx.run(_BODIES_OF_SEVERAL, {"ids": some}):
                tx.seen["bodies", row.server_id].append(row)
    found: list[Any] | None = tx.seen.get(("bodies", server_id))
    return found


def to_run(tx: Tx, server_id: str) -> list[tuple[str, str, bool]]:
    """(deployment id, rendered derived config, to be stopped) of what the server's agent has yet to run or report."""
    return [(r.id, r.body, bool(r.cancelling)) for r in _by_name(tx.run(_TO_RUN, {"server_id": server_id}).all())]


def _last_line(data: bytes | None) -> str | None:
    lines = bytes(data).decode(errors="replace").split("\n") if data else ()
    return next((line for line in reversed(lines) if line.strip()), None)


def _by_name(found: Sequence[Any]) -> list[Any]:
    return sorted(found, key=lambda row: row.name or "")


def _deployment(row: Any) -> Deployment:
    return Deployment(
        id=row.id,
        project_id=row.project_id,
        server_id=row.server_id,
        config_id=row.config_id,
        action=row.action,
        status=row.status,
        status_reason=row.status_reason,
        input_values=rows.load(row.input_values),
        output_values=rows.load(row.output_values),
        signal_transport=row.signal_transport,
        resource_id=row.resource_id,
        stack_id=row.stack_id,
        trigger_id=row.trigger_id,
        withheld=row.withheld,
        cancelling=bool(row.cancelling),
        admitted=bool(row.admitted),
        created_at=rows.moment(row.created_at),
        updated_at=rows.moment_optional(row.updated_at),
    )
