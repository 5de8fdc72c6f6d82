"""Queries for deployments and for the documents of servers."""

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
_LOCKED = _GET.with_for_update()
_SEVERAL = sa.select(deployments).where(deployments.c.id.in_(sa.bindparam("ids", expanding=True)))
#: A deployment may name any server id, as in Heat. A known server runs only its own project's and admitted deployments.
_OWNER = sa.select(servers.c.project_id).where(servers.c.id == sa.bindparam("server_id")).scalar_subquery()
MAY_RUN = sa.or_(deployments.c.project_id == sa.func.coalesce(_OWNER, deployments.c.project_id), deployments.c.admitted)
#: Deployments in a project's document of a server: its own and, if the server belongs to the project, admitted ones.
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
    .order_by(deployments.c.status.desc(), deployments.c.seq)  # sorts IN_PROGRESS before FAILED before COMPLETE
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
                "held_by",
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
_DISOWN = (
    sa.update(deployments)
    .where(deployments.c.id == sa.bindparam("id_"), deployments.c.resource_id == sa.bindparam("resource"))
    .values(stack_id=None, resource_id=None)
)
_DELETE = sa.delete(deployments).where(deployments.c.id == sa.bindparam("id_"))
_COUNT = sa.select(sa.func.count()).where(deployments.c.project_id == sa.bindparam("project"))
_LIST = (
    sa.select(deployments)
    .where(deployments.c.project_id == sa.bindparam("project"), deployments.c.seq > sa.bindparam("after"))
    .order_by(deployments.c.seq)
    .limit(sa.bindparam("limit"))
)
_SEQ = sa.select(deployments.c.seq).where(
    deployments.c.id == sa.bindparam("id"), deployments.c.project_id == sa.bindparam("project")
)
_LIST_SERVER = _LIST.where(deployments.c.server_id == sa.bindparam("server_id"))
_SIZE = sa.func.length(deployments.c.input_values) + sa.func.length(deployments.c.output_values)
_SIZES, _SIZES_SERVER = _LIST.with_only_columns(_SIZE), _LIST_SERVER.with_only_columns(_SIZE)
_ANY_BODIES = (
    sa.select(configs.c.body, configs.c.name)
    .join_from(deployments, configs, deployments.c.config_id == configs.c.id)
    .order_by(deployments.c.seq)
)
_SHOWN = deployments.c.held_by.is_(None)
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
#: The key of ``Tx.prefetched`` with the servers whose bodies a read transaction may need.
_EXPECTED = ("bodies", "expected")


def add(tx: Tx, new: Deployment) -> None:
    """Insert a deployment."""
    tx.execute_fast(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "server_id": new.server_id,
            "config_id": new.config_id,
            "action": new.action,
            "status": new.status,
            "status_reason": tx.secrets.redact_text(new.status_reason),
            "input_values": tx.secrets.dump(new.input_values),
            "output_values": tx.secrets.dump(new.output_values),
            "signal_transport": new.signal_transport,
            "resource_id": new.resource_id,
            "stack_id": new.stack_id,
            "trigger_id": new.trigger_id,
            "held_by": new.held_by,
            "cancelling": new.cancelling,
            "admitted": new.admitted,
            "created_at": rows.to_micros(new.created_at),
            "updated_at": rows.to_micros_optional(new.updated_at),
        },
    )


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Deployment:
    """
    Return the deployment; ``for_update`` locks its row.

    Raises EntityNotFound if the deployment does not exist, or belongs to another project than ``project_id``.
    """
    found = find(tx, id, for_update=for_update)
    if found is None or project_id not in (None, found.project_id):
        raise EntityNotFound.of("Software deployment", id)
    return found


def prefetch(tx: Tx, ids: Sequence[str]) -> list[Deployment]:
    """
    Load several deployments at once; return those that were not loaded before.

    In a read transaction, ``find`` returns them from memory afterwards.
    """
    if tx.prefetched is not None:
        ids = [id for id in ids if ("deployment", id) not in tx.prefetched]
    found = [_deployment(tx, row) for some in rows.portions(ids) for row in tx.run(_SEVERAL, {"ids": some})]
    if tx.prefetched is not None:
        tx.prefetched |= dict.fromkeys((("deployment", id) for id in ids), None)
        tx.prefetched |= {("deployment", each.id): each for each in found}
    return found


def find(tx: Tx, id: str, *, for_update: bool = False) -> Deployment | None:
    """Return the deployment with this id, or None; ``for_update`` locks its row."""
    if tx.prefetched is not None and ("deployment", id) in tx.prefetched:
        known: Deployment | None = tx.prefetched["deployment", id]
        return known
    row = tx.run(_LOCKED if for_update else _GET, {"id": id}).first()
    return None if row is None else _deployment(tx, row)


def of_run(tx: Tx, server_id: str, config_id: str) -> Deployment | None:
    """Return the deployment that runs this derived config on this server; one that is in progress has precedence."""
    row = tx.run(_OF_RUN, {"server_id": server_id, "config_id": config_id}).first()
    return None if row is None else _deployment(tx, row)


def is_of(tx: Tx, id: str, server_id: str) -> bool:
    """Return whether the server may run the deployment, so that its agent may report the result."""
    return tx.run(_IS_OF, {"id": id, "server_id": server_id}).first() is not None


def under_way(tx: Tx, ids: Sequence[str]) -> dict[str, tuple[str | None, str | None]]:
    """Return the deployments that are IN_PROGRESS: deployment id → (reason, last line of output)."""
    found = tx.run(_UNDER_WAY, {"ids": list(ids)}) if ids else ()
    return {row.id: (row.status_reason, _last_line(row.last)) for row in found}


def save(tx: Tx, changed: Deployment) -> None:
    """Write the changeable columns of a deployment."""
    tx.run(
        _SAVE,
        {
            "id_": changed.id,
            "config_id": changed.config_id,
            "action": changed.action,
            "status": changed.status,
            "status_reason": tx.secrets.redact_text(changed.status_reason),
            "input_values": tx.secrets.dump(changed.input_values),
            "output_values": tx.secrets.dump(changed.output_values),
            "signal_transport": changed.signal_transport,
            "held_by": changed.held_by,
            "cancelling": changed.cancelling,
            "admitted": changed.admitted,
            "updated_at": rows.to_micros_optional(changed.updated_at),
        },
    )


def relink(tx: Tx, id: str, stack_id: str, resource_id: str) -> None:
    """Assign the deployment to a resource."""
    tx.run(_RELINK, {"id_": id, "stack": stack_id, "resource": resource_id})


def disown(tx: Tx, id: str, resource_id: str) -> None:
    """Remove the deployment's link to its resource if it belongs to this resource."""
    tx.run(_DISOWN, {"id_": id, "resource": resource_id})


def delete(tx: Tx, id: str) -> None:
    """Delete the deployment."""
    tx.run(_DELETE, {"id_": id})


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's deployments."""
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def page(
    tx: Tx, project_id: str, server_id: str | None = None, *, after: int | None = None, limit: int = 2**31 - 1
) -> list[tuple[int, Deployment]]:
    """
    Return deployments, oldest first, each with its position in the list.

    ``server_id`` restricts them to one server. ``after`` is a position: only the deployments after it are returned.
    """
    values = {"project": project_id, "after": after or 0, "limit": limit}
    found = tx.run(_LIST_SERVER, {**values, "server_id": server_id}) if server_id else tx.run(_LIST, values)
    return [(row.seq, _deployment(tx, row)) for row in found]


def count_fitting(
    tx: Tx, project_id: str, server_id: str | None = None, *, after: int | None, limit: int, size: int
) -> int:
    """
    Return how many of the next ``limit`` deployments of ``page`` have values of at most ``size`` characters in total.

    The result is at least 1.
    """
    values = {"project": project_id, "after": after or 0, "limit": limit}
    sizes = tx.run(_SIZES_SERVER, {**values, "server_id": server_id}) if server_id else tx.run(_SIZES, values)
    found = sizes.scalars().all()
    count = rows.count_fitting(found, size)
    return count if count < len(found) else limit


def position(tx: Tx, id: str, project_id: str) -> int | None:
    """Return the deployment's position, as in ``page``, or None if the project has no such deployment."""
    found: int | None = tx.run(_SEQ, {"id": id, "project": project_id}).scalar()
    return found


def list_all(tx: Tx, project_id: str, server_id: str | None = None) -> list[Deployment]:
    """Return all deployments of a project, oldest first. Only for projects that are known to have few."""
    return [each for _, each in page(tx, project_id, server_id)]


def bodies(tx: Tx, server_id: str, project_id: str) -> list[str]:
    """
    Return the rendered derived configs in a project's document of a server, in Heat's order: by name, then by age.
    """
    ahead = _prefetched_bodies(tx, server_id)
    if ahead is not None:
        return [tx.secrets.decrypt(r.body) for r in _by_name([row for row in ahead if row.project_id == project_id])]
    found = tx.run(_BODIES_OF_PROJECT, {"server_id": server_id, "project": project_id}).all()
    return [tx.secrets.decrypt(r.body) for r in _by_name(found)]


def prefetch_bodies(tx: Tx, server_ids: Collection[str]) -> None:
    """In a read transaction, let the first call of ``bodies`` for one of these servers load those of all."""
    if tx.prefetched is not None:
        tx.prefetched.setdefault(_EXPECTED, set()).update(server_ids)


def _prefetched_bodies(tx: Tx, server_id: str) -> list[Any] | None:
    if tx.prefetched is None:
        return None
    expected = tx.prefetched.get(_EXPECTED, ())
    if server_id in expected:
        del tx.prefetched[_EXPECTED]
        tx.prefetched |= {("bodies", id): [] for id in expected}
        for some in rows.portions(expected):
            for row in tx.run(_BODIES_OF_SEVERAL, {"ids": some}):
                tx.prefetched["bodies", row.server_id].append(row)
    found: list[Any] | None = tx.prefetched.get(("bodies", server_id))
    return found


def to_run(tx: Tx, server_id: str) -> list[tuple[str, str, bool]]:
    """
    Return the runs that the server's own agent has to run, report or stop.

    Each is (deployment id, rendered derived config, whether the agent has to stop the run).
    """
    found = tx.run(_TO_RUN, {"server_id": server_id}).all()
    return [(r.id, tx.secrets.decrypt(r.body), bool(r.cancelling)) for r in _by_name(found)]


def _last_line(data: bytes | None) -> str | None:
    lines = bytes(data).decode(errors="replace").split("\n") if data else ()
    return next((line for line in reversed(lines) if line.strip()), None)


def _by_name(found: Sequence[Any]) -> list[Any]:
    return sorted(found, key=lambda row: row.name or "")


def _deployment(tx: Tx, row: Any) -> Deployment:
    return Deployment(
        id=row.id,
        project_id=row.project_id,
        server_id=row.server_id,
        config_id=row.config_id,
        action=row.action,
        status=row.status,
        status_reason=row.status_reason,
        input_values=tx.secrets.load(row.input_values),
        output_values=tx.secrets.load(row.output_values),
        signal_transport=row.signal_transport,
        resource_id=row.resource_id,
        stack_id=row.stack_id,
        trigger_id=row.trigger_id,
        held_by=row.held_by,
        cancelling=bool(row.cancelling),
        admitted=bool(row.admitted),
        created_at=rows.from_micros(row.created_at),
        updated_at=rows.from_micros_optional(row.updated_at),
    )
