"""Queries for checks of deployments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from stoker.model.check import Check, CheckState
from stoker.store import rows
from stoker.store.deployments import MAY_RUN
from stoker.store.repository import Repository
from stoker.store.schema import checks, configs, deployments, resources
from stoker.store.schema import stacks as all_stacks
from stoker.store.tx import Tx

_CHECKS = Repository(Check, checks, key=("deployment_id",), fixed=("server_id",))
_RESET = (
    sa.update(checks)
    .where(checks.c.deployment_id == sa.bindparam("id"))
    .values(
        config_id=sa.bindparam("new_config_id"),
        state=CheckState.UNKNOWN.value,
        since=sa.case((checks.c.state == CheckState.UNKNOWN.value, checks.c.since), else_=sa.bindparam("now")),
        checked_at=None,
        reason=sa.bindparam("new_reason"),
        changes="[]",
    )
)
#: Checks that the server's agent performs: by its own timer, or once for a request.
_TO_CHECK = (
    sa.select(checks.c.deployment_id, checks.c.check_interval, checks.c.requested_at, configs.c.body)
    .join_from(checks, deployments, deployments.c.id == checks.c.deployment_id)
    .join(configs, configs.c.id == deployments.c.config_id)
    .where(
        checks.c.server_id == sa.bindparam("server_id"),
        sa.or_(checks.c.check_interval.is_not(None), checks.c.requested_at.is_not(None)),
        deployments.c.status == "COMPLETE",
        deployments.c.mode.is_(None),  # only the effect of an applied config is compared
        MAY_RUN,
    )
    .order_by(deployments.c.seq)
)
_NAME = sa.select(configs.c.name).where(configs.c.id == deployments.c.config_id).scalar_subquery()
_STACK = sa.select(all_stacks.c.name).where(all_stacks.c.id == deployments.c.stack_id).scalar_subquery()
_RESOURCE = sa.select(resources.c.name).where(resources.c.id == deployments.c.resource_id).scalar_subquery()
_OF_DEPLOYMENT = (
    *(deployments.c.status, deployments.c.status_reason, deployments.c.stack_id),
    *(_NAME.label("name"), _STACK.label("stack_name"), _RESOURCE.label("resource_name"), deployments.c.seq),
)
_SHOWN = (
    sa.select(*_CHECKS.columns, *_OF_DEPLOYMENT)
    .join_from(checks, deployments, deployments.c.id == checks.c.deployment_id)
    .where(deployments.c.project_id == sa.bindparam("project_id"))
    .order_by(deployments.c.seq)
)
#: Deployments that can be checked: a trigger's deployment is one event, which is not expected to last.
_CHECKABLE = (
    sa.select(deployments.c.id)
    .where(
        deployments.c.project_id == sa.bindparam("project_id"),
        deployments.c.trigger_id.is_(None),
        deployments.c.status.is_not(None),
    )
    .order_by(deployments.c.seq)
)
_CHECKABLE_ON = _CHECKABLE.where(deployments.c.server_id.in_(sa.bindparam("ids", expanding=True)))
_CHECKABLE_IN = _CHECKABLE.join(all_stacks, all_stacks.c.id == deployments.c.stack_id).where(
    all_stacks.c.root_id == sa.bindparam("root_id")
)


class ToCheck(NamedTuple):
    """A check that an agent performs, with the rendered derived config."""

    deployment_id: str
    interval: int | None
    #: The request to answer, as an opaque number.
    requested: int | None
    body: str


class DeploymentCheck(NamedTuple):
    """A check with the columns of its deployment that people see."""

    check: Check
    status: str | None
    status_reason: str | None
    stack_id: str | None
    #: The name of the deployment's config.
    name: str | None
    stack_name: str | None
    resource_name: str | None
    #: The place in lists.
    position: int


def find(tx: Tx, deployment_id: str) -> Check | None:
    """Return the check of a deployment, or None if the deployment was never to be checked."""
    return _CHECKS.find(tx, deployment_id)


def add(tx: Tx, new: Check) -> None:
    """Insert the check of a deployment."""
    _CHECKS.add(tx, new)


def save(tx: Tx, changed: Check) -> None:
    """Write the changeable columns of a check."""
    _CHECKS.save(tx, changed)


def reset(tx: Tx, deployment_id: str, config_id: str, reason: str) -> None:
    """Forget the last result, because another run starts. Do nothing for a deployment without a check."""
    values = {"id": deployment_id, "new_config_id": config_id, "new_reason": reason, "now": rows.to_micros(tx.now)}
    tx.execute_fast(_RESET, values)


def to_check(tx: Tx, server_id: str) -> list[ToCheck]:
    """Return the checks that the server's own agent performs."""
    return [
        ToCheck(id, interval, requested, tx.secrets.decrypt(body))
        for id, interval, requested, body in tx.fetch_all(_TO_CHECK, {"server_id": server_id})
    ]


def list_all(
    tx: Tx,
    project_id: str,
    *,
    ids: Collection[str] | None = None,
    state: CheckState | None = None,
    server_ids: Collection[str] | None = None,
    root_id: str | None = None,
    after: int | None = None,
    limit: int | None = None,
) -> list[DeploymentCheck]:
    """
    Return the checks of the project's deployments, in the order of the deployments.

    The other arguments restrict the deployments: to their ids, a state, servers, and a tree of stacks. ``after`` is a
    position: only the checks after it are returned.
    """
    query = _SHOWN.limit(limit)
    if after is not None:
        query = query.where(deployments.c.seq > after)
    if ids is not None:
        query = query.where(checks.c.deployment_id.in_(list(ids)))
    if state is not None:
        query = query.where(checks.c.state == state.value)
    if server_ids is not None:
        query = query.where(checks.c.server_id.in_(list(server_ids)))
    if root_id is not None:
        query = query.join(all_stacks, all_stacks.c.id == deployments.c.stack_id).where(all_stacks.c.root_id == root_id)
    return [
        DeploymentCheck(_CHECKS.decode(row, tx.secrets), *tuple[Any, ...](row)[-len(_OF_DEPLOYMENT) :])
        for row in tx.run(query, {"project_id": project_id})
    ]


def checkable_on(tx: Tx, project_id: str, server_ids: Collection[str]) -> Sequence[str]:
    """Return the ids of the project's deployments on these servers that can be checked."""
    return [
        row[0]
        for portion in rows.portions(server_ids)
        for row in tx.run(_CHECKABLE_ON, {"project_id": project_id, "ids": portion})
    ]


def checkable_in(tx: Tx, project_id: str, root_id: str) -> Sequence[str]:
    """Return the ids of the deployments in a tree of stacks that can be checked."""
    return [row[0] for row in tx.fetch_all(_CHECKABLE_IN, {"project_id": project_id, "root_id": root_id})]
