"""Figures about the whole site, which operators monitor: servers by status, jobs, bytes of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from stoker.model.server import AgentAccess, Kind
from stoker.store import jobs, rows
from stoker.store.schema import servers
from stoker.store.tx import Tx

#: The rules of ``model.server.Server.status``.
_STATUS = sa.case(
    (servers.c.agent_access != AgentAccess.ALLOWED.value, servers.c.agent_access),
    (servers.c.last_seen > sa.bindparam("since", type_=sa.BigInteger), "ONLINE"),
    (servers.c.last_seen.is_not(None), "OFFLINE"),
    (sa.and_(servers.c.kind == Kind.ENROLLED.value, servers.c.key_generation == 0), "ENROLLING"),
    else_="NEVER_SEEN",
).label("status")
_STATUSES = sa.select(_STATUS).subquery()
_SERVERS = sa.select(_STATUSES.c.status, sa.func.count()).group_by(_STATUSES.c.status)
_BYTES = {
    "sqlite": sa.text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"),
    "postgresql": sa.text("SELECT pg_database_size(current_database())"),
}


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """The figures at one time. All processes of a site read the same."""

    servers: Mapping[str, int]
    jobs: jobs.Backlog
    database_bytes: int


def read(tx: Tx, offline_after: timedelta) -> SiteFigures:
    """Read the figures. ``offline_after`` is the time without a heartbeat after which a server is OFFLINE."""
    since = rows.to_micros(tx.now - offline_after)
    return SiteFigures(
        servers={status: int(count) for status, count in tx.fetch_all(_SERVERS, {"since": since})},
        jobs=jobs.backlog(tx),
        database_bytes=int(tx.scalar(_BYTES[tx.connection.dialect.name], {})),
    )
