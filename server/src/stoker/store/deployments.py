"""Queries for deployments, each with its current run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from stoker.model.deployment import Deployment
from stoker.store import configs, rows
from stoker.store.query import column, execute, exists, scalar
from stoker.store.repository import Repository
from stoker.store.sql import compose, sql
from stoker.store.tx import Tx

_FIXED = ("project_id", "server_id", "resource_id", "stack_id", "trigger_id", "created_at")
_DEPLOYMENTS = Repository(Deployment, "deployments", fixed=_FIXED, noun="Software deployment")
find, get, update, delete = _DEPLOYMENTS.find, _DEPLOYMENTS.get, _DEPLOYMENTS.update, _DEPLOYMENTS.delete
prime, find_several = _DEPLOYMENTS.prime, _DEPLOYMENTS.find_several
#: Insert a deployment with its first run, and write the changeable columns of a locked one.
add, save = partial(_DEPLOYMENTS.add, later=True), partial(_DEPLOYMENTS.save, later=True)
#: What does not change during a run. An UPDATE without it writes fewer indexes.
_FIXED_IN_RUN = ("config_id", "action", "input_values", "signal_transport", "mode", "run_number", "queued_at")
#: Write the columns of a locked deployment that change during its run, or at its end.
save_progress = partial(Repository(Deployment, "deployments", fixed=(*_FIXED, *_FIXED_IN_RUN)).save, later=True)
OWNER = "(SELECT servers.project_id FROM servers WHERE servers.id = deployments.server_id)"
#: A deployment may name any server id, as in Heat. A known server runs only its own project's and admitted deployments.
MAY_RUN = f"(deployments.project_id = coalesce({OWNER}, deployments.project_id) OR deployments.admitted)"
#: An agent that was seen so recently may hold a poll, which lasts a minute at most.
POLLING = timedelta(minutes=2)
#: Whether Stoker's own agent runs on a server (``model.server``).
_HAS_OWN_AGENT = (
    "((servers.kind = 'enrolled' OR servers.agent IS NULL)"
    " AND (servers.kind != 'deployed' OR servers.key_generation > 0)"
    " OR servers.kind != 'enrolled' AND servers.agent = 'stoker')"
)
_WAS_SENT = "(sent_at IS NOT NULL OR started_at IS NOT NULL OR status_code IS NOT NULL)"
# A delivery is recorded a moment after the document was sent. Therefore an agent that polls may have any run that waits
# for it.
#: Whether an agent may have begun the current run of a deployment, with the parameter of ``polled_since``.
MAY_HAVE_BEGUN = (
    f"(deployments.sent_at IS NOT NULL OR deployments.started_at IS NOT NULL OR deployments.status_code IS NOT NULL"
    f" OR deployments.state IN ('QUEUED', 'CANCELLING') AND EXISTS (SELECT 1 FROM servers"
    f" WHERE servers.id = deployments.server_id AND {_HAS_OWN_AGENT} AND servers.last_seen > :polled_since))"
)
#: Return the deployments of a stack's resources on a server. Nested stacks have deployments of their own.
of_stack_on_server: Callable[[Tx, str, str], list[Deployment]] = _DEPLOYMENTS.lister(
    "stack_id = :stack_id AND server_id = :server_id ORDER BY seq"
)
# Sorts IN_PROGRESS before FAILED before COMPLETE.
_OF_RUN = _DEPLOYMENTS.select(
    f"config_id = :config_id AND server_id = :server_id AND {MAY_RUN} ORDER BY status DESC, seq LIMIT 1"
)
_OWNERS = sql(
    "SELECT config_id, server_id, id, trigger_id,"
    " (SELECT stacks.root_id FROM stacks WHERE stacks.id = deployments.stack_id),"
    " EXISTS (SELECT 1 FROM checks WHERE checks.deployment_id = deployments.id)"
    f" FROM deployments WHERE config_id @in(ids) AND {MAY_RUN} ORDER BY status DESC, seq"
)
_WITH_CONFIGS = sql(
    f"SELECT {_DEPLOYMENTS.columns}, {configs.COLUMNS} FROM deployments"
    " LEFT JOIN configs ON configs.id = deployments.config_id"
    " WHERE deployments.id @in(ids) ORDER BY deployments.id @for_update_of(deployments)"
)
_WIDTH, _ID, _CONFIG_ID = (
    len(_DEPLOYMENTS.codec.fields),
    *(_DEPLOYMENTS.codec.fields.index(name) for name in ("id", "config_id")),
)
#: Return whether a server may run a deployment, so that its agent may report the result: ``is_of(tx, id, server_id)``.
is_of: Callable[[Tx, str, str], bool] = exists(
    f"SELECT 1 FROM deployments WHERE id = :id AND server_id = :server_id AND {MAY_RUN}"
)
#: Return whether a server has the config of a client, or may have run it for any deployment.
has_run_config: Callable[[Tx, str, str], bool] = exists(
    "SELECT 1 FROM deployments WHERE server_id = :server_id AND config_id = :config_id"
    " UNION ALL SELECT 1 FROM past_configs WHERE server_id = :server_id AND config_id = :config_id LIMIT 1"
)
#: Record that a server may have run a client's config, which its deployment leaves now.
record_past_config: Callable[[Tx, str, str], None] = execute(
    "INSERT INTO past_configs (config_id, server_id)"
    " SELECT id, :server_id FROM configs WHERE id = :config_id AND NOT is_owned"
    " ON CONFLICT (config_id, server_id) DO NOTHING"
)
_UNDER_WAY = sql(
    "SELECT id, server_id, status_reason,"
    " (SELECT data FROM logs WHERE logs.deployment_id = deployments.id ORDER BY logs.seq DESC LIMIT 1)"
    " FROM deployments WHERE id @in(ids) AND status = 'IN_PROGRESS'"
)
_SERVER_IDS = sql("SELECT id, server_id FROM deployments WHERE id @in(ids)")
_disown: Callable[[Tx, str, str], None] = execute(
    "UPDATE deployments SET stack_id = NULL, resource_id = NULL WHERE id = :id AND resource_id = :resource_id"
)
count: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM deployments WHERE project_id = :project_id")
#: Return the position of a deployment, as in ``page``, or None if the project has no such deployment.
position: Callable[[Tx, str, str], int | None] = scalar(
    "SELECT seq FROM deployments WHERE id = :id AND project_id = :project_id"
)


class Filter(Struct, frozen=True, kw_only=True):
    """Which deployments a list contains, and in which order. None and False: no restriction."""

    project_id: str
    server_id: str | None = None
    #: The name or the id of the config.
    config: str | None = None
    #: Part of the name of the config, whatever the case.
    contains: str | None = None
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED"] | None = None
    #: Deployments that clients created, of no stack and no trigger.
    of_client: bool = False
    ended_since: datetime | None = None
    newest_first: bool = False


_PAGE = f"SELECT {_DEPLOYMENTS.columns}, deployments.seq FROM deployments"
_SIZES = "SELECT length(input_values) + length(output_values) + length(changes) FROM deployments"
_UNTIL = "coalesce(updated_at, created_at) <= :until"
#: Return the deployments of stacks that have not changed on a server since a time (microseconds since 1970).
of_resources: Callable[[Tx, str, int], list[Deployment]] = _DEPLOYMENTS.lister(
    f"server_id = :server_id AND resource_id IS NOT NULL AND {_UNTIL}"
)
#: Return the ids of clients' and triggers' deployments that a server has completed until a time (microseconds since
#: 1970).
completed: Callable[[Tx, str, int], list[str]] = column(
    "SELECT id FROM deployments WHERE server_id = :server_id AND status = 'COMPLETE' AND signal_transport IS NOT NULL"
    f" AND resource_id IS NULL AND {_UNTIL} AND {MAY_RUN} ORDER BY seq"
)
#: Return whether a run of a deployment that applies a config has succeeded.
has_completed: Callable[[Tx, str], bool] = exists(
    "SELECT 1 FROM deployments WHERE id = :id AND status = 'COMPLETE' AND mode IS NULL"
    " UNION ALL SELECT 1 FROM runs WHERE deployment_id = :id AND status = 'COMPLETE' AND mode IS NULL LIMIT 1"
)
_BEGUN = f"SELECT 1 FROM deployments WHERE id = :id AND {MAY_HAVE_BEGUN}"
_CURRENT_BEGUN = sql(_BEGUN)
_ANY_BEGUN = sql(f"{_BEGUN} UNION ALL SELECT 1 FROM runs WHERE deployment_id = :id AND {_WAS_SENT} LIMIT 1")
_UPDATE_RUN = "UPDATE deployments SET {} WHERE id = :id AND config_id = :run AND {}"
# A run may have started or ended before its sending or receipt is recorded.
_DELIVER = sql(
    _UPDATE_RUN.format(
        "state = CASE WHEN :received AND state = 'QUEUED' THEN 'DELIVERED' ELSE state END,"
        " sent_at = coalesce(sent_at, :at), channel = coalesce(channel, :by)",
        "(sent_at IS NULL OR :received AND state = 'QUEUED')",
    )
)
_HEARTBEAT = sql(
    _UPDATE_RUN.format(
        "state = CASE WHEN state IN ('QUEUED', 'DELIVERED') THEN 'RUNNING' ELSE state END, last_heartbeat_at = :now,"
        " started_at = coalesce(started_at, :now), sent_at = coalesce(sent_at, :now), channel = coalesce(channel, :by)",
        "ended_at IS NULL",
    )
)


def forget(tx: Tx, id: str) -> None:
    """Let ``find`` read a deployment again, after a statement that does not write the whole row."""
    tx.cache.pop(("deployments", id), None)


def of_run(tx: Tx, server_id: str, config_id: str, *, for_update: bool = False) -> Deployment | None:
    """
    Return the deployment that runs this derived config on this server; one that is in progress has precedence.

    ``for_update`` locks its row. Then None also if the deployment has another run since.
    """
    run = {"server_id": server_id, "config_id": config_id}
    return _DEPLOYMENTS.first(tx, _OF_RUN, run, for_update=for_update)


class RunOwner(NamedTuple):
    """A deployment that runs a derived config."""

    config_id: str
    server_id: str
    id: str
    trigger_id: str | None
    #: The root of the tree of stacks.
    root_id: str | None
    #: The agent may have to compare the effect of the run from its end on.
    is_checked: bool


def find_owners(tx: Tx, runs: Collection[tuple[str, str]]) -> dict[tuple[str, str], RunOwner]:
    """Return the deployment of each run, by server id and derived config id; one in progress has precedence."""
    result = tx.fetch_all(_OWNERS, {"ids": rows.dump(list({config_id for _, config_id in runs}))})
    owners: dict[tuple[str, str], RunOwner] = {}
    for owner in map(RunOwner._make, result):
        if (owner.server_id, owner.config_id) in runs:
            owners.setdefault((owner.server_id, owner.config_id), owner)
    return owners


def prime_with_configs(tx: Tx, ids: Collection[str]) -> None:
    """
    Lock deployments in the order of their ids, and read them and the configs of their current runs at once: ``find``
    and the functions of ``configs`` take them from memory.
    """
    for row in tx.fetch_all(_WITH_CONFIGS, {"ids": rows.dump(list(ids))}):
        tx.cache["deployments", row[_ID]] = row[:_WIDTH]
        if row[_WIDTH] is not None:  # the config's body
            tx.cache["configs", row[_CONFIG_ID]] = row[_WIDTH:]


def server_ids(tx: Tx, ids: Sequence[str]) -> dict[str, str]:
    """Return the servers' ids of the deployments with these ids, by deployment."""
    return dict(tx.fetch_all(_SERVER_IDS, {"ids": rows.dump(list(ids))}))


def under_way(tx: Tx, ids: Sequence[str]) -> dict[str, tuple[str, str | None, str | None]]:
    """Return the deployments that are IN_PROGRESS: deployment id → (server id, reason, last line of output)."""
    result = tx.fetch_all(_UNDER_WAY, {"ids": rows.dump(list(ids))}) if ids else ()
    return {id: (server_id, reason, _last_line(last)) for id, server_id, reason, last in result}


def polled_since(tx: Tx) -> int:
    """Return the parameter of ``MAY_HAVE_BEGUN``: agents that were seen since then may poll."""
    return rows.to_micros(tx.now - POLLING)


def may_have_begun(tx: Tx, id: str, *, any_run: bool = False) -> bool:
    """Return whether an agent may have begun the current run of the deployment, or with ``any_run`` an earlier one."""
    statement = _ANY_BEGUN if any_run else _CURRENT_BEGUN
    return tx.execute_fast(statement, {"id": id, "polled_since": polled_since(tx)}) is not None


def disown(tx: Tx, id: str, resource_id: str) -> None:
    """Remove the deployment's link to its resource if it belongs to this resource."""
    forget(tx, id)
    _disown(tx, id, resource_id)


def page(tx: Tx, only: Filter, *, after: int | None = None, limit: int = 2**31 - 1) -> list[tuple[int, Deployment]]:
    """
    Return deployments in the order of the list, each with its position in it.

    ``after`` is a position: only the deployments after it are returned.
    """
    return [(row[-1], _DEPLOYMENTS.decode(row, tx.secrets)) for row in _read_page(tx, _PAGE, only, after, limit)]


def count_matching(tx: Tx, only: Filter) -> int:
    """Return the number of deployments that ``page`` returns."""
    condition, values = _matching(only)
    return int(tx.scalar(compose(f"SELECT count(*) FROM deployments WHERE {condition}"), values))


def list_ended_last(tx: Tx, only: Filter, limit: int) -> list[Deployment]:
    """Return the deployments that ended last, at most ``limit``."""
    condition, values = _matching(only)
    query = compose(_DEPLOYMENTS.select(f"{condition} ORDER BY ended_at DESC LIMIT :limit").text)
    return _DEPLOYMENTS.all(tx, query, {**values, "limit": limit})


def _read_page(tx: Tx, select: str, only: Filter, after: int | None, limit: int) -> Sequence[Any]:
    condition, values = _matching(only)
    if only.newest_first:
        order, start = "seq < :after ORDER BY seq DESC", 2**62
    else:
        order, start = "seq > :after ORDER BY seq", 0
    query = compose(f"{select} WHERE {condition} AND {order} LIMIT :limit")
    return tx.fetch_all(query, {**values, "after": start if after is None else after, "limit": limit})


#: Conditions for fields of ``Filter`` that are set. The run's config has the name of the config that it derives from.
_CONDITIONS = {
    "of_client": "resource_id IS NULL AND trigger_id IS NULL",
    "server_id": "server_id = :server_id",
    "ended_since": "ended_at >= :ended_since",
    "config": "(config_id = :config"
    " OR config_id IN (SELECT id FROM configs WHERE project_id = :project_id AND name = :config))",
    "contains": "EXISTS (SELECT 1 FROM configs WHERE configs.id = deployments.config_id"
    " AND @position(lower(configs.name), :contains) > 0)",
}


def _matching(only: Filter) -> tuple[str, dict[str, Any]]:
    """Return the condition for the deployments that match, with the values of its parameters."""
    values = {
        "of_client": only.of_client or None,
        "server_id": only.server_id or None,
        "ended_since": only.ended_since and rows.to_micros(only.ended_since),
        "config": only.config or None,
        "contains": only.contains if only.contains is None else only.contains.lower(),
    }
    conditions = [
        "project_id = :project_id",
        *((f"status = '{only.status}'",) if only.status else ()),  # part of the statement, as it is of the index
        *(condition for name, condition in _CONDITIONS.items() if values[name] is not None),
    ]
    return " AND ".join(conditions), {**values, "project_id": only.project_id}


def count_fitting(tx: Tx, only: Filter, *, after: int | None, limit: int, size: int) -> int:
    """
    Return how many of the next ``limit`` deployments of ``page`` have values of at most ``size`` characters in total.

    The result is at least 1.
    """
    sizes = [row[0] for row in _read_page(tx, _SIZES, only, after, limit)]
    count = rows.count_fitting(sizes, size)
    return count if count < len(sizes) else limit


def list_all(tx: Tx, project_id: str) -> list[Deployment]:
    """Return all deployments of a project, oldest first. Only for projects that are known to have few."""
    return [deployment for _, deployment in page(tx, Filter(project_id=project_id))]


class Delivery(NamedTuple):
    """The sending or the receipt of a run."""

    deployment_id: str
    config_id: str
    channel: str
    at: datetime
    #: The agent has acknowledged the run, or its transport has no receipts. False: the run was sent and may be lost.
    received: bool = True


def record_deliveries(tx: Tx, deliveries: Iterable[Delivery]) -> None:
    """
    Record when runs were sent or received. The first time of sending is kept; a run that has started keeps its state.
    """
    runs: dict[tuple[str, str], dict[str, Any]] = {}
    for run in deliveries:
        forget(tx, run.deployment_id)
        values = {"id": run.deployment_id, "run": run.config_id, "by": run.channel, "at": rows.to_micros(run.at)}
        first = runs.setdefault((run.deployment_id, run.config_id), {**values, "received": False})
        first["received"] |= run.received
    tx.run_many(_DELIVER, list(runs.values()))


def heartbeat(tx: Tx, id: str, config_id: str, channel: str) -> None:
    """Record a heartbeat of the run, without progress."""
    forget(tx, id)
    tx.execute_fast(_HEARTBEAT, {"id": id, "run": config_id, "now": rows.to_micros(tx.now), "by": channel})


def save_streams(tx: Tx, changed: Deployment) -> None:
    """Write the state of the current run's output, which is a sign of life."""
    streams = {name: getattr(changed, name) for name in ("stdout_bytes", "stderr_bytes", "stdout_held", "stderr_held")}
    _DEPLOYMENTS.update(tx, changed.id, later=True, last_heartbeat_at=tx.now, **streams)


def _last_line(data: bytes | None) -> str | None:
    lines = bytes(data).decode(errors="replace").split("\n") if data else ()
    return next((line for line in reversed(lines) if line.strip()), None)
