"""Queries for deployments and for the documents of servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from stoker.model.deployment import Deployment
from stoker.store import rows, statements
from stoker.store.repository import Repository, require
from stoker.store.schema import configs, deployments, logs, runs, servers
from stoker.store.tx import Tx

_DEPLOYMENTS = Repository(
    Deployment,
    deployments,
    fixed=("project_id", "server_id", "resource_id", "stack_id", "trigger_id", "created_at"),
)
_SEVERAL = _DEPLOYMENTS.select(deployments.c.id.in_(sa.bindparam("ids", expanding=True)))
#: A deployment may name any server id, as in Heat. A known server runs only its own project's and admitted deployments.
_OWNER = sa.select(servers.c.project_id).where(servers.c.id == sa.bindparam("server_id")).scalar_subquery()
MAY_RUN = sa.or_(deployments.c.project_id == sa.func.coalesce(_OWNER, deployments.c.project_id), deployments.c.admitted)
#: Deployments in a project's document of a server: its own and, if the server belongs to the project, admitted ones.
OF_PROJECT = sa.or_(
    deployments.c.project_id == sa.bindparam("project"),
    sa.and_(deployments.c.admitted, sa.bindparam("project") == _OWNER),
)
#: The run of the deployment's current config.
IS_CURRENT_RUN = sa.and_(runs.c.deployment_id == deployments.c.id, runs.c.config_id == deployments.c.config_id)
_OF_RUN = (
    _DEPLOYMENTS.by("config_id", "server_id")
    .where(MAY_RUN)
    .order_by(deployments.c.status.desc(), deployments.c.seq)  # sorts IN_PROGRESS before FAILED before COMPLETE
    .limit(1)
)
_ID_PLACE = _DEPLOYMENTS.columns.index(deployments.c.id)
#: Whether the server may run the deployment, for queries of several servers.
_MAY_RUN_THERE = sa.or_(
    deployments.c.project_id
    == sa.func.coalesce(
        sa.select(servers.c.project_id).where(servers.c.id == deployments.c.server_id).scalar_subquery(),
        deployments.c.project_id,
    ),
    deployments.c.admitted,
)
_OF_RUNS = sa.select(
    deployments.c.config_id,
    deployments.c.server_id,
    deployments.c.id,
    deployments.c.trigger_id,
    sa.and_(
        deployments.c.stack_id.is_(None),
        deployments.c.resource_id.is_(None),
        deployments.c.status == "IN_PROGRESS",
        sa.not_(deployments.c.cancelling),
        sa.not_(deployments.c.removing),
    ),
).where(statements.AnyOf(deployments.c.config_id), _MAY_RUN_THERE)
_LOCK_ALL = (
    sa.select(*_DEPLOYMENTS.columns)
    .where(statements.AnyOf(deployments.c.id))
    .order_by(deployments.c.id)
    .with_for_update()
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
_RELINK = statements.update(deployments, "stack_id", "resource_id")
_DISOWN = (
    sa.update(deployments)
    .where(deployments.c.id == sa.bindparam("key_id"), deployments.c.resource_id == sa.bindparam("key_resource_id"))
    .values(stack_id=None, resource_id=None)
)
_COUNT = statements.count(deployments, "project_id")
_LIST = (
    _DEPLOYMENTS.by("project_id")
    .add_columns(deployments.c.seq)
    .where(deployments.c.seq > sa.bindparam("after"))
    .order_by(deployments.c.seq)
    .limit(sa.bindparam("limit"))
)
_SEQ = sa.select(deployments.c.seq).where(*statements.equal(deployments, "id", "project_id"))
_LIST_SERVER = _LIST.where(deployments.c.server_id == sa.bindparam("server_id"))
_SIZE = sa.func.length(deployments.c.input_values) + sa.func.length(deployments.c.output_values)
_SIZES, _SIZES_SERVER = _LIST.with_only_columns(_SIZE), _LIST_SERVER.with_only_columns(_SIZE)
_ANY_BODIES = (
    sa.select(configs.c.body, configs.c.name)
    .join_from(deployments, configs, deployments.c.config_id == configs.c.id)
    .order_by(deployments.c.seq)
)
_SHOWN = deployments.c.held_by.is_(None)
#: Runs that any agent may see. Other agents than Stoker's apply every config, whatever its mode.
_APPLIES = deployments.c.mode.is_(None)
_BODIES_OF_SEVERAL = (
    _ANY_BODIES.add_columns(
        deployments.c.server_id,
        sa.case((deployments.c.admitted, servers.c.project_id), else_=deployments.c.project_id).label("project_id"),
    )
    .outerjoin_from(deployments, servers, servers.c.id == deployments.c.server_id)
    .where(deployments.c.server_id.in_(sa.bindparam("ids", expanding=True)), _SHOWN, _APPLIES)
)
_BODIES = _ANY_BODIES.where(deployments.c.server_id == sa.bindparam("server_id"))
_BODIES_OF_PROJECT = _BODIES.where(OF_PROJECT, _SHOWN, _APPLIES)
_IS_AWAITED = sa.and_(deployments.c.status == "IN_PROGRESS", _SHOWN)
_TO_RUN = (
    sa.select(
        configs.c.body,
        configs.c.name,
        deployments.c.server_id,
        deployments.c.id,
        deployments.c.config_id,
        deployments.c.cancelling,
        deployments.c.mode,
        runs.c.queued_at,
        sa.and_(_IS_AWAITED, runs.c.sent_at.is_(None)),
        sa.and_(_IS_AWAITED, sa.or_(runs.c.sent_at.is_(None), runs.c.state == "QUEUED")),
    )
    .join_from(deployments, configs, deployments.c.config_id == configs.c.id)
    .outerjoin(runs, IS_CURRENT_RUN)
    .where(
        statements.AnyOf(deployments.c.server_id),
        # The condition of the index, with constants: the databases do not compare it with parameters.
        sa.text(
            "(deployments.cancelling OR deployments.status = 'IN_PROGRESS'"
            " OR deployments.signal_transport = 'NO_SIGNAL')"
        ),
        sa.or_(deployments.c.cancelling, _SHOWN),
        _MAY_RUN_THERE,
    )
    .order_by(deployments.c.seq)
)
_COMPLETED = (
    sa.select(deployments.c.id)
    .where(
        *statements.equal(deployments, "server_id"),
        deployments.c.status == "COMPLETE",
        deployments.c.signal_transport.isnot(None),
        sa.func.coalesce(deployments.c.updated_at, deployments.c.created_at) <= sa.bindparam("until"),
        MAY_RUN,
    )
    .order_by(deployments.c.seq)
)
#: The key of ``Tx.prefetched`` with the servers whose bodies a read transaction may need.
_EXPECTED = ("bodies", "expected")


def add(tx: Tx, new: Deployment) -> None:
    """Insert a deployment."""
    _DEPLOYMENTS.put(tx, new)


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Deployment:
    """
    Return the deployment; ``for_update`` locks its row.

    Raises EntityNotFound if the deployment does not exist, or belongs to another project than ``project_id``.
    """
    return require(find(tx, id, for_update=for_update), "Software deployment", id, project_id)


def prefetch(tx: Tx, ids: Sequence[str]) -> list[Deployment]:
    """
    Load several deployments at once; return those that were not loaded before.

    In a read transaction, ``find`` returns them from memory afterwards.
    """
    if tx.prefetched is not None:
        ids = [id for id in ids if ("deployment", id) not in tx.prefetched]
    loaded = _DEPLOYMENTS.several(tx, _SEVERAL, ids)
    if tx.prefetched is not None:
        tx.prefetched |= dict.fromkeys((("deployment", id) for id in ids), None)
        tx.prefetched |= {("deployment", deployment.id): deployment for deployment in loaded}
    return loaded


def find(tx: Tx, id: str, *, for_update: bool = False) -> Deployment | None:
    """Return the deployment with this id, or None; ``for_update`` locks its row."""
    if tx.prefetched is not None and ("deployment", id) in tx.prefetched:
        deployment: Deployment | None = tx.prefetched["deployment", id]
        return deployment
    return _DEPLOYMENTS.find(tx, id, for_update=for_update)


def of_run(tx: Tx, server_id: str, config_id: str) -> Deployment | None:
    """Return the deployment that runs this derived config on this server; one that is in progress has precedence."""
    return _DEPLOYMENTS.first(tx, _OF_RUN, {"server_id": server_id, "config_id": config_id})


class RunOwner(NamedTuple):
    """A deployment that runs a derived config."""

    config_id: str
    server_id: str
    id: str
    trigger_id: str | None
    #: The run is in progress, nothing else is happening to the deployment, and no stack owns it.
    is_plain: bool


def of_runs(tx: Tx, config_ids: Collection[str]) -> list[RunOwner]:
    """Return the deployments that run these derived configs on their servers."""
    result = tx.fetch_all(_OF_RUNS, {"ids": rows.dump(list(config_ids))})
    return [RunOwner(config, server, id, trigger, bool(plain)) for config, server, id, trigger, plain in result]


def lock_all(tx: Tx, ids: Collection[str]) -> dict[str, Callable[[], Deployment]]:
    """
    Lock deployments, and return for each of them a function that decodes it.

    The function adds the deployment's secrets to those that the transaction has at that time.
    """
    locked = tx.fetch_all(_LOCK_ALL, {"ids": rows.dump(list(ids))})
    return {row[_ID_PLACE]: partial(_decode, tx, row) for row in locked}


def _decode(tx: Tx, row: Any) -> Deployment:
    return _DEPLOYMENTS.decode(row, tx.secrets)


def is_of(tx: Tx, id: str, server_id: str) -> bool:
    """Return whether the server may run the deployment, so that its agent may report the result."""
    return tx.execute_fast(_IS_OF, {"id": id, "server_id": server_id}) is not None


def under_way(tx: Tx, ids: Sequence[str]) -> dict[str, tuple[str | None, str | None]]:
    """Return the deployments that are IN_PROGRESS: deployment id → (reason, last line of output)."""
    result = tx.run(_UNDER_WAY, {"ids": list(ids)}) if ids else ()
    return {row.id: (row.status_reason, _last_line(row.last)) for row in result}


def completed(tx: Tx, server_id: str, until: int) -> list[str]:
    """Return the deployments that the server has completed until this time (microseconds since 1970)."""
    return [row[0] for row in tx.fetch_all(_COMPLETED, {"server_id": server_id, "until": until})]


def save(tx: Tx, changed: Deployment) -> None:
    """Write the changeable columns of a deployment."""
    _DEPLOYMENTS.put_changes(tx, changed)


def relink(tx: Tx, id: str, stack_id: str, resource_id: str) -> None:
    """Assign the deployment to a resource."""
    tx.execute_fast(_RELINK, {"key_id": id, "stack_id": stack_id, "resource_id": resource_id})


def disown(tx: Tx, id: str, resource_id: str) -> None:
    """Remove the deployment's link to its resource if it belongs to this resource."""
    tx.execute_fast(_DISOWN, {"key_id": id, "key_resource_id": resource_id})


def delete(tx: Tx, id: str) -> None:
    """Delete the deployment."""
    _DEPLOYMENTS.delete(tx, id)


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's deployments."""
    return int(tx.scalar(_COUNT, {"project_id": project_id}))


def page(
    tx: Tx, project_id: str, server_id: str | None = None, *, after: int | None = None, limit: int = 2**31 - 1
) -> list[tuple[int, Deployment]]:
    """
    Return deployments, oldest first, each with its position in the list.

    ``server_id`` restricts them to one server. ``after`` is a position: only the deployments after it are returned.
    """
    result = tx.fetch_all(*_page_of(_LIST, _LIST_SERVER, project_id, server_id, after, limit))
    return [(row[-1], _DEPLOYMENTS.decode(row, tx.secrets)) for row in result]


def _page_of(
    every: sa.Select[Any],
    of_server: sa.Select[Any],
    project_id: str,
    server_id: str | None,
    after: int | None,
    limit: int,
) -> tuple[sa.Select[Any], dict[str, Any]]:
    """Return the query for a page with its parameters: ``of_server`` if ``server_id`` is set, else ``every``."""
    values = {"project_id": project_id, "after": after or 0, "limit": limit}
    return (of_server, {**values, "server_id": server_id}) if server_id else (every, values)


def count_fitting(
    tx: Tx, project_id: str, server_id: str | None = None, *, after: int | None, limit: int, size: int
) -> int:
    """
    Return how many of the next ``limit`` deployments of ``page`` have values of at most ``size`` characters in total.

    The result is at least 1.
    """
    sizes = [row[0] for row in tx.fetch_all(*_page_of(_SIZES, _SIZES_SERVER, project_id, server_id, after, limit))]
    count = rows.count_fitting(sizes, size)
    return count if count < len(sizes) else limit


def position(tx: Tx, id: str, project_id: str) -> int | None:
    """Return the deployment's position, as in ``page``, or None if the project has no such deployment."""
    seq: int | None = tx.scalar(_SEQ, {"id": id, "project_id": project_id})
    return seq


def list_all(tx: Tx, project_id: str, server_id: str | None = None) -> list[Deployment]:
    """Return all deployments of a project, oldest first. Only for projects that are known to have few."""
    return [deployment for _, deployment in page(tx, project_id, server_id)]


def bodies(tx: Tx, server_id: str, project_id: str) -> list[str]:
    """
    Return the rendered derived configs in a project's document of a server, in Heat's order: by name, then by age.
    """
    prefetched = _prefetched_bodies(tx, server_id)
    if prefetched is not None:
        own = [row for row in prefetched if row.project_id == project_id]
        return [tx.secrets.decrypt(row[0]) for row in _by_name(own)]
    result = tx.fetch_all(_BODIES_OF_PROJECT, {"server_id": server_id, "project": project_id})
    return [tx.secrets.decrypt(row[0]) for row in _by_name(result)]


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
        for portion in rows.portions(expected):
            for row in tx.run(_BODIES_OF_SEVERAL, {"ids": portion}):
                tx.prefetched["bodies", row.server_id].append(row)
    bodies: list[Any] | None = tx.prefetched.get(("bodies", server_id))
    return bodies


class ToRun(NamedTuple):
    """A run that a server's own agent has to run, report or stop."""

    #: The rendered derived config.
    body: str
    deployment_id: str
    config_id: str
    #: Whether the agent has to stop the run.
    is_cancelling: bool
    #: PREVIEW or UNDO; None: the run applies the config.
    mode: str | None
    #: The time of the request; None: not recorded.
    queued_at: datetime | None
    #: The run has to start, and was never sent.
    is_unsent: bool
    #: The run has to start, and the agent has not acknowledged it.
    is_unreceived: bool


def to_run(tx: Tx, server_id: str) -> list[ToRun]:
    """Return the runs that the server's own agent has to run, report or stop."""
    return to_run_on(tx, (server_id,)).get(server_id, [])


def to_run_on(tx: Tx, server_ids: Collection[str]) -> dict[str, list[ToRun]]:
    """Return the runs of ``to_run`` of several servers, by server."""
    result: dict[str, list[ToRun]] = {}
    for row in _by_name(tx.fetch_all(_TO_RUN, {"ids": rows.dump(list(server_ids))})):
        body, _, server_id, id, config_id, is_cancelling, mode, queued_at, is_unsent, is_unreceived = row
        run = ToRun(
            tx.secrets.decrypt(body),
            id,
            config_id,
            bool(is_cancelling),
            mode,
            None if queued_at is None else rows.from_micros(queued_at),
            bool(is_unsent),
            bool(is_unreceived),
        )
        result.setdefault(server_id, []).append(run)
    return result


def _last_line(data: bytes | None) -> str | None:
    lines = bytes(data).decode(errors="replace").split("\n") if data else ()
    return next((line for line in reversed(lines) if line.strip()), None)


def _by_name(bodies: Sequence[Any]) -> list[Any]:
    """Sort rows that begin with the body and the name of a config by the name."""
    return sorted(bodies, key=lambda row: row[1] or "")
