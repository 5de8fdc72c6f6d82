"""
Runs that wait for their server's maintenance window: withheld until it opens, and again when it closes before their
agent has been told of them.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from stoker.deployments import clock, policy
from stoker.deployments.deadlines import DEADLINE, expect_run, seconds_of
from stoker.deployments.policy import Policy
from stoker.store import configs, governing, rows
from stoker.store.bell import deployment_topic
from stoker.store.governing import Changed
from stoker.store.tx import Tx
from stoker.work.port import Work

#: Kind of the job that looks at a server's windows when one opens or closes; its key and argument: ``server_id``.
JOB = "server.window"
#: What a deployment says of itself until its agent says more.
WAITING = "Waiting for the agent"


@lru_cache(maxsize=4096)
def kept(text: str | None) -> Policy:
    """As it is stored: it was checked then."""
    return Policy() if text is None else policy.read(rows.load(text))


def first_opening(tx: Tx, root_id: str) -> datetime | None:
    """
    When the last of those windows opens that runs of a tree of stacks wait for; None: they wait for none, or for a
    second one, as nobody fetched them while the first was open.
    """
    found: datetime | None = None
    for server_id, since in governing.held(tx, root_id):
        server = governing.server(tx, server_id)
        opening = clock.opens(kept(server.policy).windows, since) if server is not None else None
        if opening is None or opening <= tx.now:
            return None
        found = max(found or opening, opening)
    return found


def waiting(server_name: str, opening: datetime) -> str:
    return f"Waiting for the maintenance window of {server_name}, which opens {rows.heat_time(opening)}"


def look_again(tx: Tx, work: Work, server_id: str, at: datetime | None) -> None:
    """Have ``reconsider`` done then, and at no other time; None: never."""
    work.cancel(tx, JOB, server_id)
    if at is not None:
        work.defer(tx, JOB, server_id, {"server_id": server_id}, at=at)


def reconsider(tx: Tx, work: Work, server_id: str) -> None:
    """A window opened or closed, or the server's policy is another: what waits goes on, or the other way round."""
    server = governing.server(tx, server_id)
    if server is None:
        look_again(tx, work, server_id, None)
        return
    said = kept(server.policy).windows
    opening = clock.opens(said, tx.now)
    if opening is None:
        changed = governing.release(tx, server_id, WAITING)
        for each in changed:
            _start_clock(tx, work, each)
        untold = bool(said) and governing.has_untold(tx, server_id, server.project_id)
        look_again(tx, work, server_id, clock.closes(said, tx.now) if untold else None)
    else:
        changed = governing.withhold(tx, server_id, server.project_id, waiting(server.name, opening))
        for each in changed:
            work.cancel(tx, DEADLINE, each.config_id)
        look_again(tx, work, server_id, opening if changed else None)
    for each in changed:
        tx.ring(deployment_topic(each.deployment_id))
    if changed:
        tx.touch(server_id)


def _start_clock(tx: Tx, work: Work, released: Changed) -> None:
    """A run's own time begins when it may."""
    config = configs.find(tx, released.config_id) if released.awaited else None
    seconds = seconds_of(config.inputs) if config else None
    if seconds is not None:
        expect_run(tx, work, released.deployment_id, released.config_id, seconds)
