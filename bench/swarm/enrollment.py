"""Enrollment of a swarm's servers, with one token for all."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.swarm.connection import Connection, Endpoint
from bench.swarm.statistics import Statistics

#: Simultaneous requests of one process.
_AT_ONCE = 20


class EnrollmentRefused(Exception):
    """The server refused the token."""


def enroll_servers(call: Callable[[str, str, Any], Any], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """
    Enroll servers. Return their ``id`` and ``key`` by name.

    ``call(verb, path, body)`` calls Heat's API, or the agent API for paths below /agent, and returns the decoded body.
    """
    token = call("POST", "/enrollments", {"limit": len(names)})["enrollment"]["token"]
    enrolled = {name: call("POST", "/agent/v1/enroll", _redemption(token, name)) for name in names}
    return {name: {"id": answer["server_id"], "key": answer["key"]} for name, answer in enrolled.items()}


def load_keys(file: Path) -> dict[str, str]:
    """Return the keys by name that an earlier swarm stored in ``file``; empty if the file does not exist."""
    return json.loads(file.read_text()) if file.exists() else {}


def save_keys(file: Path, keys: Mapping[str, str]) -> None:
    """Store keys by name in ``file``, which only its owner can read."""
    file.touch(mode=0o600)
    file.write_text(json.dumps(keys))


async def enroll_swarm(endpoint: Endpoint, token: str, names: Sequence[str], statistics: Statistics) -> dict[str, str]:
    """
    Enroll servers as their agents do, with a token for many. Return their keys by name.

    Raises EnrollmentRefused if the token is not valid for all of them, and OSError if the server does not answer.
    """
    keys: dict[str, str] = {}
    remaining = iter(names)

    async def enroll_some(index: int) -> None:
        connection = Connection(endpoint, "", index)
        for name in remaining:
            began = time.perf_counter()
            body = json.dumps(_redemption(token, name)).encode()
            answer = await connection.request("POST", "/agent/v1/enroll", body)
            if answer.status != 201:
                message = json.loads(answer.body or b"{}").get("error", {}).get("message", f"status {answer.status}")
                raise EnrollmentRefused(f"{name} cannot be enrolled: {message}")
            statistics.record("enroll", time.perf_counter() - began)
            keys[name] = json.loads(answer.body)["key"]
        connection.close()

    await asyncio.gather(*(enroll_some(index) for index in range(min(_AT_ONCE, len(names)))))
    return keys


def _redemption(token: str, name: str) -> Mapping[str, Any]:
    return {"token": token, "instance": name, "hostname": name}
