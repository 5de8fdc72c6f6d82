"""Queries for checks of deployments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from stoker.model.deployment import Check, CheckState
from stoker.store import rows
from stoker.store.deployments import MAY_RUN
from stoker.store.query import column, execute, scalar
from stoker.store.repository import Repository
from stoker.store.sql import compose, sql
from stoker.store.tx import Tx

_CHECKS = Repository(Check, "checks", key=("deployment_id",), fixed=("server_id",))
find, add, save = _CHECKS.find, _CHECKS.add, _CHECKS.save
#: Forget the last result, because a run of this config starts, with a reason, for a deployment: ``reset(tx, config_id,
#: reason, deployment_id)``. Do nothing for a deployment without a check.
reset: Callable[[Tx, str, str, str], None] = execute(
    f"""UPDATE checks SET config_id = :config_id, state = '{CheckState.UNKNOWN}',
        since = CASE WHEN state = '{CheckState.UNKNOWN}' THEN since ELSE :now END,
        checked_at = NULL, reason = :reason, changes = '[]'
    WHERE deployment_id = :id"""
)
#: Checks that the server's agent performs: by its own timer, or once for a request. Only the effect of an applied
#: config is compared.
_TO_CHECK = sql(
    f"""SELECT checks.deployment_id, checks.check_interval, checks.requested_at, configs.body FROM checks
    JOIN deployments ON deployments.id = checks.deployment_id JOIN configs ON configs.id = deployments.config_id
    WHERE checks.server_id = :server_id AND (checks.check_interval IS NOT NULL OR checks.requested_at IS NOT NULL)
    AND deployments.status = 'COMPLETE' AND deployments.mode IS NULL AND {MAY_RUN}
    ORDER BY deployments.seq"""
)
_SHOWN = f"""SELECT {_CHECKS.columns}, deployments.status, deployments.status_reason, deployments.stack_id,
    deployments.seq FROM checks JOIN deployments ON deployments.id = checks.deployment_id
    LEFT JOIN stacks ON stacks.id = deployments.stack_id WHERE deployments.project_id = :project_id"""
#: Conditions of ``list_all`` by the arguments that it has.
_CONDITIONS = {
    "after": "deployments.seq > :after",
    "ids": "checks.deployment_id @in(ids)",
    "state": "checks.state = :state",
    "server_ids": "checks.server_id @in(server_ids)",
    "root_id": "stacks.root_id = :root_id",
}
#: Return the number of checks that ``list_all`` returns for a state.
count: Callable[[Tx, str, CheckState], int] = scalar(
    "SELECT count(*) FROM checks JOIN deployments ON deployments.id = checks.deployment_id"
    f" WHERE deployments.project_id = :project_id AND {_CONDITIONS['state']}"
)
#: Deployments that can be checked: a trigger's deployment is one event, which is not expected to last.
_CHECKABLE = (
    "deployments.project_id = :project_id AND deployments.trigger_id IS NULL AND deployments.status IS NOT NULL"
)
#: Return the ids of a project's deployments on these servers that can be checked.
checkable_on: Callable[[Tx, str, Collection[str]], list[str]] = column(
    f"SELECT id FROM deployments WHERE {_CHECKABLE} AND server_id @in(ids) ORDER BY seq"
)
#: Return the ids of a project's deployments in a tree of stacks that can be checked.
checkable_in: Callable[[Tx, str, str], list[str]] = column(
    "SELECT deployments.id FROM deployments JOIN stacks ON stacks.id = deployments.stack_id"
    f" WHERE {_CHECKABLE} AND stacks.root_id = :root_id ORDER BY deployments.seq"
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
    #: The place in lists.
    position: int


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
    values = {
        "after": after,
        "ids": None if ids is None else rows.dump(list(ids)),
        "state": state and state.value,
        "server_ids": None if server_ids is None else rows.dump(list(server_ids)),
        "root_id": root_id,
    }
    conditions = [_SHOWN, *(condition for name, condition in _CONDITIONS.items() if values[name] is not None)]
    query = compose(f"{' AND '.join(conditions)} ORDER BY deployments.seq LIMIT :limit")
    parameters = {**values, "project_id": project_id, "limit": rows.UNLIMITED if limit is None else limit}
    return [DeploymentCheck(_CHECKS.decode(row, tx.secrets), *row[-4:]) for row in tx.fetch_all(query, parameters)]
