"""Queries for configs. A config is immutable, so it is rendered once and served as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from stoker.model.config import CREDENTIALS, Config
from stoker.model.delivered_hook import OPTION, DeliveredHook, delivered
from stoker.model.errors import EntityNotFound
from stoker.store import rows, statements
from stoker.store.encryption import ENCRYPTED, is_encrypted
from stoker.store.schema import configs, deployments
from stoker.store.schema import stacks as all_stacks
from stoker.store.tx import Tx

_ADD = sa.insert(configs)
_COLUMNS = (configs.c.body, configs.c.project_id, configs.c.created_at)
_BODY = sa.select(*_COLUMNS).where(*statements.equal(configs, "id"))
_SEVERAL = sa.select(*_COLUMNS, configs.c.id).where(configs.c.id.in_(sa.bindparam("ids", expanding=True)))
_ALL_BODIES = sa.select(*_COLUMNS, configs.c.id).where(statements.AnyOf(configs.c.id))
_OF_TREE = (
    sa.select(*_COLUMNS)
    .join_from(deployments, configs, configs.c.id == deployments.c.config_id)
    .join(all_stacks, all_stacks.c.id == deployments.c.stack_id)
    .where(*statements.equal(deployments, "server_id"), all_stacks.c.root_id == sa.bindparam("root_id"))
)
#: The body if it contains secrets, else NULL. Without parameters, so that any statement can contain it.
SECRET_BODY: sa.Label[Any] = sa.literal_column(
    f"CASE WHEN substr(configs.body, 1, {len(ENCRYPTED)}) = '{ENCRYPTED}' THEN configs.body END", sa.Text
).label("secret_body")
_EXISTS = sa.select(configs.c.project_id, SECRET_BODY).where(configs.c.id == sa.bindparam("id"))
_DELETE = statements.delete(configs, "id")
_DELETE_OWNED = _DELETE.where(configs.c.is_owned, ~sa.exists().where(deployments.c.config_id == sa.bindparam("id")))
_USED = sa.select(deployments.c.id).where(deployments.c.config_id == sa.bindparam("id")).limit(1)
_COUNT = statements.count(configs, "project_id")
_SEQ = sa.select(configs.c.seq).where(*statements.equal(configs, "id", "project_id"))
_LIST = (
    sa.select(configs.c.seq, configs.c.id, configs.c.name, configs.c.group, configs.c.created_at)
    .where(
        configs.c.project_id == sa.bindparam("project_id"),
        configs.c.seq < sa.bindparam("before"),
        sa.or_(sa.bindparam("with_derived"), sa.not_(configs.c.is_derived)),
    )
    .order_by(configs.c.seq.desc())
    .limit(sa.bindparam("limit"))
)


#: The member that a rendered config with a delivered hook contains.
_HOOK = f'"{OPTION}":'


def render(config: Config) -> str:
    """Return the config as JSON: the form of Heat's API and of the documents that agents read."""
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
    """Insert a config and return its rendered form. The transaction learns the values of its secret inputs."""
    for entry in new.inputs:
        if entry.get("secret") or entry["name"] in CREDENTIALS:
            tx.secrets.learn((entry.get("value"), entry.get("default")))
    body = render(new)
    tx.put(
        _ADD,
        {
            "id": new.id,
            "project_id": new.project_id,
            "name": new.name,
            "group": new.group,
            "is_derived": new.is_derived,
            "created_at": rows.to_micros(new.created_at),
            "is_owned": new.is_owned,
            "body": tx.secrets.encrypt(body, always=any(entry.get("secret") for entry in new.inputs)),
        },
    )
    return body


def body(tx: Tx, id: str, project_id: str) -> str:
    """Return the rendered config. Raises EntityNotFound if the project has no such config."""
    return tx.secrets.decrypt(_row(tx, id, project_id)[0])


def get(tx: Tx, id: str, project_id: str) -> Config:
    """Return the config. Raises EntityNotFound if the project has no such config."""
    return _config(tx, _row(tx, id, project_id))


def prefetch(tx: Tx, ids: Sequence[str]) -> None:
    """Load several configs at once. In a read transaction, ``find`` returns them from memory afterwards."""
    if tx.prefetched is None:
        return
    missing = [id for id in ids if ("config", id) not in tx.prefetched]
    tx.prefetched |= dict.fromkeys((("config", id) for id in missing), None)
    for portion in rows.portions(missing):
        tx.prefetched |= {("config", row.id): _config(tx, row) for row in tx.run(_SEVERAL, {"ids": portion})}


def find(tx: Tx, id: str) -> Config | None:
    """Return the config with this id, of any project, or None."""
    if tx.prefetched is not None and ("config", id) in tx.prefetched:
        config: Config | None = tx.prefetched["config", id]
        return config
    row = tx.preloaded.get(("config", id)) or tx.execute_fast(_BODY, {"id": id})
    return None if row is None else _config(tx, row)


def preload(tx: Tx, ids: Collection[str]) -> None:
    """Read several configs at once; other functions take them from memory in this write transaction."""
    for *row, id in tx.fetch_all(_ALL_BODIES, {"ids": rows.dump(list(ids))}):
        tx.preloaded["config", id] = row


def of_tree(tx: Tx, root_id: str, server_id: str) -> list[Config]:
    """Return the derived configs of the deployments of a tree of stacks on a server."""
    return [_config(tx, row) for row in tx.fetch_all(_OF_TREE, {"root_id": root_id, "server_id": server_id})]


def exists(tx: Tx, id: str, project_id: str) -> bool:
    """Return whether the project has a config with this id."""
    return secret_inputs(tx, id, project_id) is not None


def secret_inputs(tx: Tx, id: str, project_id: str) -> Collection[str] | None:
    """
    Return the names of the config's secret inputs, or None if the project has no such config.

    The transaction learns the values of these inputs, so it encrypts and redacts them from then on.
    """
    preloaded = tx.preloaded.get(("config", id))
    if preloaded is None:
        row = tx.execute_fast(_EXISTS, {"id": id})
    else:
        row = preloaded[1], preloaded[0] if is_encrypted(preloaded[0]) else None
    if row is None or row[0] != project_id:
        return None
    if row[1] is None:
        return ()
    return [entry["name"] for entry in tx.secrets.load(row[1])["inputs"] if entry.get("secret")]


def find_hook(tx: Tx, id: str) -> DeliveredHook | None:
    """Return the hook that an agent has to fetch for the config, or None. Few configs have one."""
    row = tx.preloaded.get(("config", id)) or tx.execute_fast(_BODY, {"id": id})
    body = "" if row is None else tx.secrets.decrypt(row[0])
    return delivered(rows.load(body)["options"]) if _HOOK in body else None


def lock(tx: Tx, id: str) -> None:
    """Lock the config until the transaction ends: no other transaction deletes it or adds a schedule that names it."""
    tx.advisory_lock(f"config {id}")


def in_use(tx: Tx, id: str) -> bool:
    """Return whether a deployment uses the config."""
    return tx.execute_fast(_USED, {"id": id}) is not None


def delete(tx: Tx, id: str) -> None:
    """Delete the config."""
    tx.execute_fast(_DELETE, {"id": id})


def delete_owned(tx: Tx, id: str) -> None:
    """Delete a config that Stoker created, unless a deployment still uses it."""
    tx.execute_fast(_DELETE_OWNED, {"id": id})


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's configs."""
    return int(tx.scalar(_COUNT, {"project_id": project_id}))


def page(
    tx: Tx, project_id: str, *, before: int | None = None, limit: int = 2**31 - 1, with_derived: bool = True
) -> list[tuple[int, dict[str, Any]]]:
    """
    Return summaries of configs, newest first, each with its position in the list.

    ``before`` is a position: only the configs after it in the list are returned. ``with_derived`` includes derived
    configs.
    """
    values = {"project_id": project_id, "before": before or 2**62, "with_derived": with_derived, "limit": limit}
    return [
        (
            seq,
            {
                "id": id,
                "name": name,
                "group": group,
                "creation_time": rows.heat_time(rows.from_micros(created_at)),
            },
        )
        for seq, id, name, group, created_at in tx.fetch_all(_LIST, values)
    ]


def position(tx: Tx, id: str, project_id: str) -> int | None:
    """Return the config's position, as in ``page``, or None if the project has no such config."""
    seq: int | None = tx.scalar(_SEQ, {"id": id, "project_id": project_id})
    return seq


def _row(tx: Tx, id: str, project_id: str) -> Any:
    """Return the row of the project's config, with ``_COLUMNS``. Raises EntityNotFound."""
    row = tx.execute_fast(_BODY, {"id": id})
    if row is None or row[1] != project_id:
        raise EntityNotFound.of("Software config", id)
    return row


def _config(tx: Tx, row: Any) -> Config:
    body, project_id, created_at = row[:3]
    rendered = tx.secrets.load(body)
    return Config(
        id=rendered["id"],
        project_id=project_id,
        name=rendered["name"],
        group=rendered["group"],
        config=rendered["config"],
        inputs=tuple(rendered["inputs"]),
        outputs=tuple(rendered["outputs"]),
        options=rendered["options"],
        created_at=rows.from_micros(created_at),
    )
