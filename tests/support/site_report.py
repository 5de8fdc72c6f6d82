"""
Why a site under load stands still: its open work, its connections, its processes and its agents, as a text.

A test that waits in vain fails with this text, because its site is gone when the failure is read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from bench.swarm import Swarm

from support.agents import OwnAgent
from support.processes import list_children
from support.server import Served

_ROWS = 20
_OUTPUT = 4000
#: Seconds in which a process writes its stacks and ends.
_END_SECONDS = 10
#: Beginnings of the lines of /metrics that tell of notifications, jobs, polls and connections.
_METRICS = ("stoker_notif", "stoker_cache", "stoker_jobs", "stoker_held", "stoker_database_connections", "stoker_run")
QUERIES = {
    "open triggers": (
        "SELECT id, status, status_reason, total, queued, running, complete, failed, cancelled FROM triggers"
        " WHERE status = 'IN_PROGRESS'"
    ),
    "their open targets": (
        "SELECT g.server_name, g.status, g.deployment_id, d.status AS deployment_status, d.held_by"
        " FROM trigger_targets g JOIN triggers t ON t.id = g.trigger_id"
        " LEFT JOIN deployments d ON d.id = g.deployment_id"
        " WHERE t.status = 'IN_PROGRESS' AND g.status IN ('QUEUED', 'IN_PROGRESS')"
    ),
    "open deployments": (
        "SELECT d.id, s.name AS server, d.trigger_id, d.config_id, d.status, d.held_by, d.cancelling, m.revision,"
        " r.state, r.queued_at, r.sent_at, r.started_at, r.last_heartbeat_at"
        " FROM deployments d LEFT JOIN servers s ON s.id = d.server_id LEFT JOIN documents m USING (server_id)"
        " LEFT JOIN runs r ON r.deployment_id = d.id AND r.config_id = d.config_id WHERE d.status = 'IN_PROGRESS'"
        " ORDER BY d.seq"
    ),
    "jobs": (
        "SELECT kind, key, state, owner, attempts, last_error,"
        " due / 1000000 - extract(epoch FROM now())::bigint AS due_in,"
        " leased_until / 1000000 - extract(epoch FROM now())::bigint AS leased_for FROM jobs ORDER BY due"
    ),
    "sessions": (
        "SELECT pid, application_name, state, wait_event_type, wait_event, pg_blocking_pids(pid) AS blocked_by,"
        " now() - xact_start AS transaction_age, now() - state_change AS state_age, left(query, 200) AS query"
        " FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    ),
    "locks that are waited for": (
        "SELECT pid, locktype, mode, relation::regclass, transactionid FROM pg_locks WHERE NOT granted"
    ),
}


@dataclass
class SiteReport:
    """Describes a site of these parts. ``url`` leads to its PostgreSQL without any line between."""

    url: str
    stokers: Mapping[str, Served]
    swarms: Sequence[Swarm]
    agents: Sequence[OwnAgent]

    def write(self) -> str:
        """Return the description. Ends the processes of Stoker, whose stacks are a part of it."""
        parts = [*_describe_database(self.url)]
        parts += [line for swarm in self.swarms for line in _describe_swarm(swarm)]
        parts += [f"agent {agent.folder.name}:\n{agent.log[-_OUTPUT // 4 :]}" for agent in self.agents]
        parts += [line for name, stoker in self.stokers.items() for line in _describe_process(name, stoker)]
        return "\n".join(parts)


def _describe_database(url: str) -> Iterator[str]:
    try:
        with psycopg.connect(
            url, autocommit=True, connect_timeout=10, options="-c statement_timeout=10s"
        ) as connection:
            for title, query in QUERIES.items():
                cursor = connection.execute(query)
                names = [column.name for column in cursor.description or ()]
                yield from _describe_rows(title, [dict(zip(names, row, strict=True)) for row in cursor])
    except psycopg.Error as error:
        yield f"PostgreSQL: {error}"


def _describe_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"{title}: {len(rows)}"
    for row in rows[:_ROWS]:
        yield "  " + " ".join(f"{name}={value}" for name, value in row.items() if value not in (None, "", []))


def _describe_swarm(swarm: Swarm) -> Iterator[str]:
    yield f"{len(swarm.keys)} agents at port {swarm.endpoint.port}, {swarm.polling} polling, {swarm.running} running"
    yield f"  {dict(swarm.statistics.counts)}"
    yield from (f"  {number}: {agent.describe()}" for number, agent in enumerate(swarm.members, swarm.first_index))
    yield from (f"  ended: {error!r}" for error in swarm.failures)


def _describe_process(name: str, stoker: Served) -> Iterator[str]:
    yield f"process {name}:"
    for path in ("/healthz", "/metrics"):
        try:
            text = stoker.request("GET", path, headers={"X-Auth-Token": stoker.token}, timeout=10).raw.decode()
        except OSError as error:
            text = f"{{{error!r}}}"
        lines = text.splitlines()
        yield from (f"  {line}" for line in lines if line.startswith(("{", *_METRICS)) and "_bucket" not in line)
    output = stoker.output
    yield output[-_OUTPUT:]
    yield from _read_stacks(stoker, len(output))


def _read_stacks(stoker: Served, length: int) -> Iterator[str]:
    """End the processes of ``stoker``, and yield the different stacks of their threads with their number."""
    assert stoker.process is not None
    for pid in [*list_children(stoker.process.pid), stoker.process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)  # faulthandler writes the stacks
    end = time.monotonic() + _END_SECONDS
    while stoker.process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    stacks = Counter[str]()
    for stack in stoker.output[length:].split("\n\n"):
        _, _, calls = stack.partition("\n")  # without the id of the thread
        stacks[calls] += calls.startswith("  File ")
    yield from (f"  {count} ×\n{calls}" for calls, count in stacks.most_common() if count)
