"""Queries for configs. A config is immutable, so it is rendered once and served as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from stoker.model.config import CREDENTIALS, Config
from stoker.model.errors import EntityNotFound
from stoker.model.secrets import SHORTEST
from stoker.store import rows
from stoker.store.query import execute, scalar
from stoker.store.query import exists as exists_row
from stoker.store.rows import ENCRYPTED
from stoker.store.sql import insert, sql
from stoker.store.tx import Tx

_ADD = insert("configs", "id", "project_id", "name", "group", "is_derived", "created_at", "is_owned", "body")
#: The columns of a config in ``Tx.cache``.
COLUMNS = "configs.body, configs.project_id, configs.created_at, configs.name"
_BODY = sql(f"SELECT {COLUMNS} FROM configs WHERE id = :id")
_SEVERAL = sql(f"SELECT {COLUMNS}, id FROM configs WHERE id @in(ids)")
_ON_SERVER = "FROM deployments JOIN configs ON configs.id = config_id"
_OF_TREE = sql(
    f"SELECT {COLUMNS} {_ON_SERVER} JOIN stacks ON stacks.id = stack_id"
    " WHERE server_id = :server_id AND root_id = :root_id"
)
_IS_SECRET = f"substr(body, 1, {len(ENCRYPTED)}) = '{ENCRYPTED}'"
_SECRET_BODIES_ON = sql(f"SELECT body {_ON_SERVER} WHERE server_id = :server_id AND {_IS_SECRET}")
#: With the body if it contains secrets, else NULL.
_EXISTS = sql(f"SELECT project_id, CASE WHEN {_IS_SECRET} THEN body END FROM configs WHERE id = :id")
_delete: Callable[[Tx, str], None] = execute("DELETE FROM configs WHERE id = :id")
_delete_owned: Callable[[Tx, str], None] = execute(
    "DELETE FROM configs WHERE id = :id AND is_owned AND NOT EXISTS (SELECT 1 FROM deployments WHERE config_id = :id)"
)
#: Return whether a deployment uses a config.
in_use: Callable[[Tx, str], bool] = exists_row("SELECT id FROM deployments WHERE config_id = :id LIMIT 1")
count: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM configs WHERE project_id = :project_id")
#: Return the position of a config, as in ``page``, or None if the project has no such config.
position: Callable[[Tx, str, str], int | None] = scalar(
    "SELECT seq FROM configs WHERE id = :id AND project_id = :project_id"
)
_LIST = sql(
    """SELECT seq, id, name, "group", created_at FROM configs WHERE project_id = :project_id AND seq < :before
    AND (:with_derived OR NOT is_derived) ORDER BY seq DESC LIMIT :limit"""
)


class _Outputs(msgspec.Struct):
    outputs: list[dict[str, Any]]


_OUTPUTS = msgspec.json.Decoder(_Outputs)


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


def add(tx: Tx, new: Config, *, server_id: str = "", shows_present: bool = False) -> str:
    """
    Insert a config and return its rendered form. The transaction learns the values of its secret inputs.

    ``server_id`` is the server that will run the config. ``shows_present``: what the run reports may show secrets that
    are on the server now. A transaction that reads the config learns these, too.
    """
    for entry in new.inputs:
        if entry.get("secret") or entry["name"] in CREDENTIALS:
            tx.secrets.learn((entry.get("value"), entry.get("default")))
    body = render(new)
    within = tx.secrets.within(body)
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
            "body": tx.secrets.encrypt(
                body,
                always=new.has_secrets,
                present=[*within, *_secrets_on(tx, server_id)] if shows_present else within,
            ),
        },
    )
    present: dict[str, None] | None = tx.cache.get(("secrets", server_id))
    if present is not None:
        present |= _select_long(within)
    return body


def _secrets_on(tx: Tx, server_id: str) -> Collection[str]:
    """
    Return the secrets in the present configs of a server's deployments.

    They are read once for all runs that a transaction starts on the server; ``add`` adds those of each new config.
    """
    key = ("secrets", server_id)
    if key not in tx.cache:
        present: dict[str, None] = {}
        for (column,) in tx.fetch_all(_SECRET_BODIES_ON, {"server_id": server_id}):
            secrets = tx.new_secrets()
            present |= _select_long(secrets.within(secrets.decrypt(column)))
        tx.cache[key] = present
    return list(tx.cache[key])


def _select_long(texts: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(text for text in texts if len(text) >= SHORTEST)


def body(tx: Tx, id: str, project_id: str) -> str:
    """Return the rendered config. Raises EntityNotFound if the project has no such config."""
    return tx.secrets.decrypt(_row(tx, id, project_id)[0])


def get(tx: Tx, id: str, project_id: str) -> Config:
    """Return the config. Raises EntityNotFound if the project has no such config."""
    return _config(tx, _row(tx, id, project_id))


def prime(tx: Tx, ids: Iterable[str]) -> None:
    """Read several configs at once; other functions take them from memory in this transaction."""
    missing = [id for id in ids if ("configs", id) not in tx.cache]
    if tx.is_reading:
        tx.cache |= dict.fromkeys(("configs", id) for id in missing)
    if missing:
        for *row, id in tx.fetch_all(_SEVERAL, {"ids": rows.dump(missing)}):
            tx.cache["configs", id] = row


def find(tx: Tx, id: str) -> Config | None:
    """Return the config with this id, of any project, or None."""
    row = _read(tx, id)
    return None if row is None else _config(tx, row)


def of_tree(tx: Tx, root_id: str, server_id: str) -> list[Config]:
    """Return the derived configs of the deployments of a tree of stacks on a server."""
    return [_config(tx, row) for row in tx.fetch_all(_OF_TREE, {"root_id": root_id, "server_id": server_id})]


def exists(tx: Tx, id: str, project_id: str) -> bool:
    """Return whether the project has a config with this id. The transaction learns the secrets of the config."""
    row = tx.execute_fast(_EXISTS, {"id": id})
    if row is not None and row[1] is not None:
        tx.secrets.decrypt(row[1])
    return row is not None and row[0] == project_id


def learn_secrets(tx: Tx, id: str) -> None:
    """Let the transaction learn the secrets of a run's config, so that it redacts them in what the run reports."""
    exists(tx, id, "")


def outputs(tx: Tx, id: str) -> Sequence[Mapping[str, Any]]:
    """Return the outputs that a config declares, none if it does not exist. The transaction learns its secrets."""
    row = _read(tx, id)
    # A config may have a megabyte: the other members are not decoded.
    return _OUTPUTS.decode(tx.secrets.decrypt(row[0])).outputs if row is not None else ()


def is_known_without(tx: Tx, id: str, word: str) -> bool:
    """Return whether the transaction has read the config, and it does not contain the word. Costs no query."""
    row = tx.cache.get(("configs", id))
    return row is not None and word not in row[0] and not row[0].startswith(ENCRYPTED)


def find_name(tx: Tx, id: str) -> str | None:
    """Return the name of the config, or None if the config does not exist or has no name."""
    row = _read(tx, id)
    name: str | None = None if row is None else row[3]
    return name


def lock(tx: Tx, id: str) -> None:
    """Lock the config until the transaction ends: no other transaction deletes it or adds a schedule that names it."""
    tx.advisory_lock(f"config {id}")


def delete(tx: Tx, id: str) -> None:
    """Delete the config."""
    tx.cache.pop(("configs", id), None)
    _delete(tx, id)


def delete_owned(tx: Tx, id: str) -> None:
    """Delete a config that Stoker created, unless a deployment still uses it."""
    tx.cache.pop(("configs", id), None)
    _delete_owned(tx, id)


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


def _read(tx: Tx, id: str) -> Any:
    """Return the row of the config with this id, with ``COLUMNS``, or None."""
    place = ("configs", id)
    row = tx.cache.get(place)
    if row is None and not (tx.is_reading and place in tx.cache):
        row = tx.cache[place] = tx.execute_fast(_BODY, {"id": id})
    return row


def _row(tx: Tx, id: str, project_id: str) -> Any:
    """Return the row of the project's config, with ``COLUMNS``. Raises EntityNotFound."""
    row = _read(tx, id)
    if row is None or row[1] != project_id:
        raise EntityNotFound.of("Software config", id)
    return row


def _config(tx: Tx, row: Any) -> Config:
    body, project_id, created_at = row[:3]
    rendered = rows.load(tx.secrets.decrypt(body))
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
