"""
The floor: the smallest honest server that creates configs and deployments. `python -m bench --floor` measures it.

It checks a token, decodes the body, executes the statements of Stoker's creations in one durable transaction, and
answers as Heat does. It has none of the rules, limits and notifications of Stoker, so the ratio of the two is what
these cost. `python -m bench.floor PORT DATABASE` serves it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import sys
import tempfile
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.api import Api
from bench.cases import Target
from bench.stoker import temporary_database
from stoker.store import migrate
from stoker.store.sql import Statement, sql
from support import waiting
from support.ports import free_port
from support.processes import running
from support.waiting import answers

_PROJECT, _TOKEN, _USER = "floor", "token-of-the-floor", "admin"

_FIND = sql(
    "SELECT configs.body, configs.project_id, servers.project_id, servers.name FROM configs"
    " LEFT JOIN servers ON servers.id = :server_id WHERE configs.id = :config_id"
)
_ADD_CONFIG = sql(
    'INSERT INTO configs (id, project_id, name, "group", is_derived, created_at, is_owned, body)'
    " VALUES (:id, :project_id, :name, :group, FALSE, :now, FALSE, :body)"
)
_ADD_DEPLOYMENT = sql(
    "INSERT INTO deployments (id, project_id, server_id, config_id, action, status, status_reason, input_values,"
    " output_values, cancelling, admitted, removing, changed_items, created_at, state, queued_at, ended_at,"
    " requested_by) VALUES (:id, :project_id, :server_id, :config_id, :action, :status, :status_reason,"
    " :input_values, '{}', FALSE, FALSE, FALSE, 0, :now, :state, :now, :ended_at, :user)"
)
_ADD_AUDIT_ENTRY = sql(
    "INSERT INTO audit (project_id, at, actor, action, outcome, server_id, deployment_id, reason)"
    " VALUES (:project_id, :now, :user, :action, 'allowed', :server_id, :id, '')"
)
_CHANGE_DOCUMENT = sql(
    "INSERT INTO documents (server_id, revision) VALUES (:server_id, 1)"
    " ON CONFLICT (server_id) DO UPDATE SET revision = documents.revision + 1 RETURNING revision, channel"
)

#: Executes a statement on the connection of a transaction. Returns the rows, if it has any.
Execute = Callable[[Statement, dict[str, Any]], Any]


class _Refused(Exception):
    """The request names a config or a server that the project does not have."""


class _NewConfig(msgspec.Struct):
    name: str | None = None
    group: str | None = None
    config: str | None = None
    inputs: list[Any] = []
    outputs: list[Any] = []
    options: dict[str, Any] = {}


class _NewDeployment(msgspec.Struct):
    config_id: str
    server_id: str
    action: str | None = None
    status: str | None = None
    status_reason: str | None = None
    input_values: dict[str, Any] = {}


class _Sqlite:
    """One thread with one connection, which commits all that wait at once, each in a savepoint."""

    def __init__(self, path: str) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callable[[Execute], None], Future[None]]] = queue.SimpleQueue()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -16000"):
            self._connection.execute(f"PRAGMA {pragma}")
        migrate.upgrade(self._connection, "sqlite")
        threading.Thread(target=self._run, daemon=True).start()

    def write(self, do: Callable[[Execute], None]) -> asyncio.Future[None]:
        """Run ``do`` in a transaction. The result is there after the commit."""
        done: Future[None] = Future()
        self._waiting.put((do, done))
        return asyncio.wrap_future(done)

    def _run(self) -> None:
        while True:
            group = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    group.append(self._waiting.get_nowait())
            self._connection.execute("BEGIN IMMEDIATE")
            errors = [self._try(do) for do, _ in group]
            self._connection.execute("COMMIT")
            for (_, done), error in zip(group, errors, strict=True):
                done.set_result(None) if error is None else done.set_exception(error)

    def _execute(self, statement: Statement, values: dict[str, Any]) -> Any:
        text, names = statement.sqlite
        return self._connection.execute(text, [values[name] for name in names]).fetchone()

    def _try(self, do: Callable[[Execute], None]) -> Exception | None:
        self._connection.execute("SAVEPOINT one")
        try:
            do(self._execute)
        except Exception as error:
            self._connection.execute("ROLLBACK TO one")
            return error
        else:
            return None
        finally:
            self._connection.execute("RELEASE one")


class _Postgresql:
    """Eight threads with a connection each."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(8)
        with psycopg.connect(url, autocommit=True) as connection:
            migrate.upgrade(connection, "postgresql")

    def write(self, do: Callable[[Execute], None]) -> asyncio.Future[None]:
        """Run ``do`` in a transaction. The result is there after the commit."""
        return asyncio.wrap_future(self._threads.submit(self._write, do))

    def _write(self, do: Callable[[Execute], None]) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = psycopg.connect(self._url)
        with connection.transaction(), psycopg.RawCursor(connection) as cursor:

            def execute(statement: Statement, values: dict[str, Any]) -> Any:
                text, names = statement.postgresql
                cursor.execute(text, [values[name] for name in names], prepare=True)
                return cursor.fetchone() if cursor.description else None

            do(execute)


def _respond(body: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json", headers={"Cache-Control": "no-store"})


class _Floor:
    """The handlers."""

    def __init__(self, port: int, database: str) -> None:
        self._port = port
        self._store = _Sqlite(database) if database.startswith("/") else _Postgresql(database)

    async def create_config(self, request: Request) -> Response:
        new, at = msgspec.json.decode(await request.body(), type=_NewConfig), datetime.now(UTC)
        shown = {"id": str(uuid.uuid4()), **msgspec.to_builtins(new), "creation_time": f"{at:%FT%TZ}"}
        row = {
            "id": shown["id"],
            "project_id": _PROJECT,
            "name": new.name,
            "group": new.group,
            "now": int(at.timestamp() * 1e6),
            "body": msgspec.json.encode(shown).decode(),
        }
        await self._store.write(lambda execute: execute(_ADD_CONFIG, row))
        return _respond({"software_config": shown})

    async def create_deployment(self, request: Request) -> Response:
        new, at = msgspec.json.decode(await request.body(), type=_NewDeployment), datetime.now(UTC)
        now, is_done = int(at.timestamp() * 1e6), new.status != "IN_PROGRESS"
        shown = {"id": str(uuid.uuid4()), **msgspec.to_builtins(new), "output_values": {}, "updated_time": None}
        row = {
            **shown,
            "project_id": _PROJECT,
            "user": _USER,
            "input_values": msgspec.json.encode(new.input_values).decode(),
            "now": now,
            "ended_at": now if is_done else None,
            "state": "DONE" if is_done else "QUEUED",
        }

        def write(execute: Execute) -> None:
            found = execute(_FIND, row)
            if found is None or found[1] != _PROJECT or found[2] not in (None, _PROJECT):
                raise _Refused
            execute(_ADD_DEPLOYMENT, row)
            execute(_ADD_AUDIT_ENTRY, row)
            execute(_CHANGE_DOCUMENT, row)

        await self._store.write(write)
        return _respond({"software_deployment": {**shown, "creation_time": f"{at:%FT%TZ}"}})

    async def log_in(self, _: Request) -> Response:
        endpoint = {"interface": "public", "url": f"http://127.0.0.1:{self._port}/v1/{_PROJECT}"}
        answer = _respond({"token": {"catalog": [{"type": "orchestration", "endpoints": [endpoint]}]}})
        answer.headers["X-Subject-Token"] = _TOKEN
        return answer


def _checked(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if request.headers.get("X-Auth-Token") != _TOKEN or request.path_params["project"] != _PROJECT:
            return Response(status_code=401)
        try:
            return await handle(request)
        except msgspec.ValidationError as error:
            return Response(str(error), 400)
        except _Refused:
            return Response(status_code=404)

    return answer


def _serve(port: int, database: str) -> None:
    served = _Floor(port, database)
    routes = [
        Route("/v1/{project}/software_configs", _checked(served.create_config), methods=["POST"]),
        Route("/v1/{project}/software_deployments", _checked(served.create_deployment), methods=["POST"]),
        Route("/auth/tokens", served.log_in, methods=["POST"]),
        Route("/healthz", lambda _: Response()),
    ]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, access_log=False, log_level="warning")


@contextlib.contextmanager
def floor(server: str | None) -> Iterator[Target]:
    """Yield the running floor, on a new SQLite file, or in a new database of a PostgreSQL server."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    with contextlib.ExitStack() as cleanup:
        folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="stoker-bench-floor-"))
        database = cleanup.enter_context(temporary_database(server)) if server else str(Path(folder) / "floor.db")
        command = [sys.executable, "-m", "bench.floor", str(port), database]
        process = cleanup.enter_context(running(command))
        waiting.until(lambda: answers(f"{url}/healthz"))
        login = {"OS_AUTH_URL": url, "OS_USERNAME": _USER, "OS_PASSWORD": "", "OS_PROJECT_NAME": _PROJECT}
        yield Target(Api(login), (process.pid,))


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
