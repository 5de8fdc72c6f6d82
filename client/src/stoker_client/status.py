"""A summary of the service's state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from stoker_client.client import Client
from stoker_client.errors import NotFound, Refused


def read_status(client: Client) -> dict[str, Any]:
    """
    Return ``health``, counts of ``servers`` and ``stacks`` by status, and the number of triggers in progress.

    ``health`` is ``ok``, ``degraded`` with ``warnings``, or the problem. Raises Unreachable.
    """
    start = time.monotonic()
    health = _read_health(client)
    seconds = time.monotonic() - start
    return {
        "url": client.root_url,
        **health,
        "response_ms": round(seconds * 1000),
        "servers": _count(server["status"] for server in _list_servers(client)),
        "stacks": _count(stack["stack_status"] for stack in client.stacks.all()),
        "triggers_in_progress": _count_triggers(client),
    }


def _read_health(client: Client) -> dict[str, Any]:
    try:
        answer = client.health()
    except NotFound:
        return {"version": None, "health": "ok"}  # Heat has no health report; its answer proves that it works
    except Refused as problem:
        return {"version": None, "health": str(problem)}
    warnings = {"warnings": answer["warnings"]} if answer.get("warnings") else {}
    return {"version": answer.get("version"), "health": answer.get("status"), **warnings}


def _list_servers(client: Client) -> Iterable[Any]:
    try:
        return client.servers.all()
    except NotFound:
        return ()  # Heat has no list of servers


def _count_triggers(client: Client) -> int | None:
    try:
        return len(client.triggers.all(status="IN_PROGRESS"))
    except NotFound:
        return None


def _count(states: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(states).items()))
