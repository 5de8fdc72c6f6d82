"""
Why a site under load stands still: its open work, its connections, its processes and its agents, as a text.

A test that waits in vain fails with this text, because its site is gone when the failure is read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from bench.swarm import Swarm

from support.agents import OwnAgent
from support.processes import list_children
from support.server import Served

_ROWS = 20
#: Characters of the log of an agent, and of the output of a process with the stacks of its threads.
_OUTPUT, _STACKS = 1000, 20_000
#: Seconds in which a process writes its stacks and ends.
_END_SECONDS = 10
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
        parts += [f"agent {agent.folder.name}:\n{agent.log[-_OUTPUT:]}" for agent in self.agents]
        parts += [_describe_process(name, stoker) for name, stoker in self.stokers.items()]
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
    yield from (f"  ended: {error!r}" for error in swarm.failures)


def _describe_process(name: str, stoker: Served) -> str:
    """End the processes of ``stoker``, whose output ends with the stacks of their threads then."""
    assert stoker.process is not None
    for pid in [*list_children(stoker.process.pid), stoker.process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)  # faulthandler writes the stacks
    with contextlib.suppress(subprocess.TimeoutExpired):
        stoker.process.wait(_END_SECONDS)
    return f"process {name}:\n{stoker.output[-_STACKS:]}"
