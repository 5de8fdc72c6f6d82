"""
What a notification costs the processes of a site that hold no poll for it, and what it would cost to spare them.

    .venv/bin/python -m bench.notification_cost postgresql://… [--processes 3 5 8] [--rates 300 1000 3000] [--seconds 5]

One process sends changes of servers' documents, as triggers cause them, every 10 ms. Two ways are compared:

- ``all``: Stoker's own way. Every process gets every change, and its caches and waiters look at it.
- ``holder``: a prototype. Each process listens on a channel of its own, and a change goes to one process, as if the
  sender knew where the agent's poll is. The sender has to look that up, which is measured as ``lookup``.

Each listening process has the subscribers of a whole Stoker. A process's CPU at rest (heartbeats) is subtracted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import psycopg

from bench.scale.rows import PROJECT, fill
from bench.scale.stoker import temporary_database
from bench.scale.usage import cpu_seconds
from stoker import serve
from stoker.settings import Settings
from stoker.store import migrate
from stoker.store.notifications import PAUSE, decode, encode
from stoker.store.notifier import Notifier, server_topic
from stoker.store.open import Store
from stoker.store.postgresql import conninfo

#: Servers in the database, of which the changes are.
_SERVERS = 10_000
#: Servers whose holders one query looks up, as many as one batch of reports has.
_LOOKUP = 50
_NOTIFY = "SELECT pg_notify(channel, payload) FROM unnest(%s::text[], %s::text[]) AS sent (channel, payload)"
#: As the holder of a poll would be recorded: with the heartbeat, in the server's row.
_HOLDERS = "SELECT id, agent_version FROM servers WHERE id = ANY(%s)"


def _listen(url: str, secret: str, way: str, number: int, pipe: Pipe) -> None:
    """Listen as one process of a site. Report its CPU time for each message in the pipe."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(state_dir=Path(folder), database=url, secret_key=secret, public_url="http://127.0.0.1")
        store = Store(url)
        app = serve.create_app(settings, store, serve.load_site_secret(settings, store))
        if way == "all":
            store.start_listener()
            while any(store.notifier_problems().values()):
                time.sleep(0.05)
        else:
            connection = psycopg.connect(conninfo(url), autocommit=True, application_name="stoker listener")
            connection.execute(f"LISTEN stoker_{number}")
            threading.Thread(target=_receive, args=(connection, store.notifier), daemon=True).start()
        while pipe.recv() is not None:
            pipe.send(time.process_time_ns())
        store.close()
        assert app  # it has lived as long as the measurement


def _receive(connection: psycopg.Connection[Any], notifier: Notifier) -> None:
    while True:
        for notification in connection.notifies(timeout=0.5):
            for topic, revision in decode(notification.payload).changes:
                notifier.notify(topic, revision)


class _Sender:
    """Sends changes at a rate, and counts them."""

    def __init__(self, url: str, way: str, listeners: int) -> None:
        self._way = way
        self._listeners = listeners
        self._store = Store(url)
        self._store.start_listener()
        self._connection = psycopg.connect(conninfo(url), autocommit=True, application_name="stoker sender")
        self._connection.execute("SET synchronous_commit = off")
        self._topics = [server_topic(str(uuid.uuid4())) for _ in range(_SERVERS)]

    def send(self, rate: int, seconds: float) -> int:
        """Send for this time. Return the number of changes."""
        sent, begun = 0, time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            due = int((now - begun) * rate) - sent
            if due:
                self._send({random.choice(self._topics): sent + place for place in range(due)})
                sent += due
            time.sleep(PAUSE)
        return max(sent, 1)

    def _send(self, changes: dict[str, int]) -> None:
        if self._way == "all":
            self._store.notifications.send(changes)
            return
        by_holder: dict[int, dict[str, int]] = {}
        for topic, revision in changes.items():
            by_holder.setdefault(random.randrange(self._listeners), {})[topic] = revision
        sent = [(f"stoker_{holder}", payload) for holder, part in by_holder.items() for payload in encode("x", part)]
        self._connection.execute(_NOTIFY, [[channel for channel, _ in sent], [payload for _, payload in sent]])

    def close(self) -> None:
        self._connection.close()
        self._store.close()


def _measure(url: str, way: str, processes: int, rates: Sequence[int], seconds: float) -> None:
    context, secret = multiprocessing.get_context("spawn"), "x" * 40
    pipes, listeners = [], []
    for number in range(processes - 1):
        ours, theirs = context.Pipe()
        listener = context.Process(target=_listen, args=(url, secret, way, number, theirs), daemon=True)
        listener.start()
        pipes.append(ours)
        listeners.append(listener)
    _times(pipes)  # all of them listen
    sender = _Sender(url, way, processes - 1)
    at_rest: dict[str, float] = {}
    for rate in (0, *rates):
        backends = _backends(url)
        before, database, own = _times(pipes), _database(backends), time.process_time()
        sent = sender.send(rate, seconds)
        time.sleep(0.5)
        after = _times(pipes)
        used = {
            "listener": (sum(after) - sum(before)) / 1e9 / len(pipes),
            "database_for_a_listener": (_database(backends) - database) / len(pipes),
            "sender": time.process_time() - own,
        }
        if not rate:
            at_rest = used
            continue
        figures = {f"{name}_us": round(max(used[name] - at_rest[name], 0) / sent * 1e6, 2) for name in used}
        print(json.dumps({"way": way, "processes": processes, "changes_per_second": rate, **figures}), flush=True)
    sender.close()
    for pipe in pipes:
        pipe.send(None)
    for listener in listeners:
        listener.join()


def _times(pipes: Sequence[Pipe]) -> list[int]:
    for pipe in pipes:
        pipe.send(True)
    return [pipe.recv() for pipe in pipes]


def _backends(url: str) -> list[int]:
    """Return the ids of PostgreSQL's processes for the listening connections of the other processes."""
    with psycopg.connect(conninfo(url)) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'stoker%'"
        )
        return [pid for (pid,) in found.fetchall()]


def _database(pids: Sequence[int]) -> float:
    return sum(map(cpu_seconds, pids))


def _measure_lookup(url: str) -> None:
    """Print what it costs to find the holders of some servers' polls: the process's CPU time, and the database's."""
    with psycopg.connect(conninfo(url)) as connection:
        ids = [id for (id,) in connection.execute("SELECT id FROM servers WHERE project_id = %s", [PROJECT]).fetchall()]
        rounds = 300
        for timed in (False, True):
            pid, own = connection.info.backend_pid, time.process_time()
            database = cpu_seconds(pid)
            for _ in range(rounds):
                connection.execute(_HOLDERS, [random.sample(ids, _LOOKUP)]).fetchall()
            if timed:
                us = 1e6 / rounds / _LOOKUP
                process, database = time.process_time() - own, cpu_seconds(pid) - database
                print(f'{{"way": "lookup", "process_us": {process * us:.2f}, "database_us": {database * us:.2f}}}')


def main() -> None:
    """Measure both ways for each number of processes, and the lookup."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="a PostgreSQL server on this machine, where a database may be created")
    parser.add_argument("--processes", type=int, nargs="+", default=[3, 5, 8])
    parser.add_argument("--rates", type=int, nargs="+", default=[300, 1000, 3000], help="changes per second")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with ExitStack() as stack:
        url = stack.enter_context(temporary_database(options.url))
        store = Store(url)
        with store.session() as session:
            migrate.upgrade(session, store.dialect)
        fill(store, _SERVERS)
        store.close()
        _measure_lookup(url)
        for processes in options.processes:
            for way in ("all", "holder"):
                _measure(url, way, processes, options.rates, options.seconds)


if __name__ == "__main__":
    main()
